#!lua name=parley_ephemeral_values_v1

--[[
Values of the moment of one channel, of one kind: the last of each name, kept for a while. What is written
is published on the channel's topic in the same call. All keys are in one slot:

  values  hash: name -> '<n> <JSON>'
  expiry  sorted set: name, scored by when its value is forgotten (Unix ms)
  topic   of sharded publish and subscribe
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
parley_ephemeral_put_v1: keeps a value and publishes it, unless one with the same or a higher n is kept.

KEYS[1]  values
KEYS[2]  expiry
KEYS[3]  topic
ARGV[1]  name
ARGV[2]  n (an integer that a double holds); '' for one that grows by itself: the time in microseconds, in
         which no two calls fit, so that it grows also when the last one was forgotten
ARGV[3]  the value, JSON
ARGV[4]  milliseconds that it is kept; 0 forgets what was kept
ARGV[5]  names that a channel may have; beyond it, the one that would be forgotten next is
ARGV[6]  what is published: before n
ARGV[7]  what is published: after n
Returns  the JSON that is kept after that, or was forgotten
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
  if ttl > 0 then
    redis.call('HSET', keys[1], name, n .. ' ' .. value)
    redis.call('ZADD', keys[2], now + ttl, name)
    if redis.call('ZCARD', keys[2]) > tonumber(args[5]) then
      redis.call('HDEL', keys[1], redis.call('ZPOPMIN', keys[2])[1])
    end
    -- All of a kind live equally long, so none of the others lives longer than this one.
    redis.call('PEXPIRE', keys[1], ttl)
    redis.call('PEXPIRE', keys[2], ttl)
  else
    redis.call('HDEL', keys[1], name)
    redis.call('ZREM', keys[2], name)
  end
  redis.call('SPUBLISH', keys[3], args[6] .. n .. args[7])
  return value
end

--[[
parley_ephemeral_all_v1: the values that are not forgotten yet, the one that will be next first.

KEYS[1]  values
KEYS[2]  expiry
Returns  list: name, n, milliseconds that it has left, JSON; and again for each
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

redis.register_function('parley_ephemeral_put_v1', put)
redis.register_function({
  function_name = 'parley_ephemeral_all_v1',
  callback = all,
  flags = { 'no-writes' },
})
