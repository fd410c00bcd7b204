#!lua name=parley_ephemeral_values_v2

--[[
Ephemeral values of one channel and kind: the last of each name, with a TTL. The call that stores a value publishes it
on the channel's topic. All keys are in one slot:

  values  hash: name -> '<n> <JSON>'
  expiry  sorted set: name, scored by when its value expires (Unix ms)
  topic   of sharded pub/sub
--]]

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

local function split(known)
  local space = string.find(known, ' ', 1, true)
  return string.sub(known, 1, space - 1), string.sub(known, space + 1)
end

--[[
parley_ephemeral_put_v2: stores a value and publishes it, unless one with the same or a higher n is stored.

KEYS[1]  values
KEYS[2]  expiry
KEYS[3]  topic
ARGV[1]  name
ARGV[2]  n (an integer that a double holds); '' for the time in microseconds, which increases with every call,
         even after the last value has expired
ARGV[3]  the value, JSON
ARGV[4]  lifetime in milliseconds
ARGV[5]  limit of names of a channel; beyond it, the one that would expire next is deleted
ARGV[6]  message to publish: before n
ARGV[7]  message to publish: after n
Returns  the JSON that is stored after the call
--]]
local function put(keys, args)
  local name, n, value, ttl = args[1], args[2], args[3], tonumber(args[4])
  local now = now_ms()
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '-inf', now)) do
    redis.call('HDEL', keys[1], old)
    redis.call('ZREM', keys[2], old)
  end
  local known = redis.call('HGET', keys[1], name)
  if known then
    local last, kept = split(known)
    if n == '' then
      n = string.format('%.0f', math.max(now_us(), tonumber(last) + 1))
    elseif tonumber(last) >= tonumber(n) then
      return kept
    end
  elseif n == '' then
    n = string.format('%.0f', now_us())
  end
  redis.call('HSET', keys[1], name, n .. ' ' .. value)
  redis.call('ZADD', keys[2], now + ttl, name)
  if redis.call('ZCARD', keys[2]) > tonumber(args[5]) then
    redis.call('HDEL', keys[1], redis.call('ZPOPMIN', keys[2])[1])
  end
  -- All values of a kind have the same lifetime, so no other value expires after this one.
  redis.call('PEXPIRE', keys[1], ttl)
  redis.call('PEXPIRE', keys[2], ttl)
  redis.call('SPUBLISH', keys[3], args[6] .. n .. args[7])
  return value
end

--[[
parley_ephemeral_end_v2: deletes those of the values that are stored, and publishes a message for each.

KEYS[1]  values
KEYS[2]  expiry
KEYS[3]  topic
then     of each value three: its name; the message to publish, before n; after n
Returns  the number of values that were stored
--]]
local function end_values(keys, args)
  local ended = 0
  for at = 1, #args, 3 do
    local known = redis.call('HGET', keys[1], args[at])
    if known then
      redis.call('HDEL', keys[1], args[at])
      redis.call('ZREM', keys[2], args[at])
      local n = string.format('%.0f', math.max(now_us(), tonumber((split(known))) + 1))
      redis.call('SPUBLISH', keys[3], args[at + 1] .. n .. args[at + 2])
      ended = ended + 1
    end
  end
  return ended
end

--[[
parley_ephemeral_all_v2: the values that have not expired, ordered by expiry.

KEYS[1]  values
KEYS[2]  expiry
Returns  list: name, n, remaining milliseconds, JSON; of each value
--]]
local function all(keys)
  local found = {}
  local now = now_ms()
  local names = redis.call('ZRANGEBYSCORE', keys[2], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
  for at = 1, #names, 2 do
    local known = redis.call('HGET', keys[1], names[at])
    if known then
      local n, value = split(known)
      for _, one in ipairs({ names[at], n, string.format('%.0f', tonumber(names[at + 1]) - now), value }) do
        found[#found + 1] = one
      end
    end
  end
  return found
end

redis.register_function('parley_ephemeral_put_v2', put)
redis.register_function('parley_ephemeral_end_v2', end_values)
redis.register_function({
  function_name = 'parley_ephemeral_all_v2',
  callback = all,
  flags = { 'no-writes' },
})
