#!lua name=parley_upload_quota_v1

--[[
The resumable uploads of one organization that are not complete: a hash, which expires with the last of them.

  <id>  Unix milliseconds at which the upload expires, its bytes and its key, separated by blanks
--]]

--[[
parley_upload_quota_take_v1: counts an upload, unless that would exceed a limit. One that is counted stays so.

KEYS[1]  the uploads of the organization
ARGV[1]  id of the upload
ARGV[2]  Unix milliseconds at which it expires
ARGV[3]  its bytes
ARGV[4]  id of its key
ARGV[5]  uploads of one key
ARGV[6]  bytes of one key
ARGV[7]  uploads of the organization
ARGV[8]  bytes of the organization
Returns  0 if it is counted; else the number of the limit: 1 to 4, in the order of the arguments
--]]
local function take(keys, args)
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  if redis.call('HEXISTS', keys[1], args[1]) == 1 then
    return 0
  end
  local bytes = tonumber(args[3])
  local used = { 1, bytes, 1, bytes }
  local uploads = redis.call('HGETALL', keys[1])
  for at = 1, #uploads, 2 do
    local expires, size, key = string.match(uploads[at + 1], '^(%S+) (%S+) (.*)$')
    if tonumber(expires) <= now then
      redis.call('HDEL', keys[1], uploads[at])
    else
      used[3] = used[3] + 1
      used[4] = used[4] + tonumber(size)
      if key == args[4] then
        used[1] = used[1] + 1
        used[2] = used[2] + tonumber(size)
      end
    end
  end
  for limit = 1, 4 do
    if used[limit] > tonumber(args[4 + limit]) then
      return limit
    end
  end
  redis.call('HSET', keys[1], args[1], args[2] .. ' ' .. args[3] .. ' ' .. args[4])
  redis.call('PEXPIREAT', keys[1], args[2])
  return 0
end

redis.register_function('parley_upload_quota_take_v1', take)
