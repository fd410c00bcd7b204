#!lua name=parley_uploads_v1

--[[
A resumable upload: a hash, which expires with it.

  upload    JSON: what its creator declared
  <offset>  JSON: the part that begins there
--]]

--[[
parley_uploads_begin_v1: stores a new upload; one that exists stays as it is.

KEYS[1]  the upload
ARGV[1]  JSON: what its creator declared
ARGV[2]  Unix milliseconds at which it expires
Returns  nothing
--]]
local function begin(keys, args)
  if redis.call('HSETNX', keys[1], 'upload', args[1]) == 1 then
    redis.call('PEXPIREAT', keys[1], args[2])
  end
end

--[[
parley_uploads_add_v1: adds a part, unless another one begins at its offset.

KEYS[1]  the upload
ARGV[1]  offset
ARGV[2]  JSON: the part
Returns  1 if it was added, 0 if there is another part, -1 without such an upload
--]]
local function add(keys, args)
  if redis.call('HEXISTS', keys[1], 'upload') == 0 then
    return -1
  end
  return redis.call('HSETNX', keys[1], args[1], args[2])
end

redis.register_function('parley_uploads_begin_v1', begin)
redis.register_function('parley_uploads_add_v1', add)
