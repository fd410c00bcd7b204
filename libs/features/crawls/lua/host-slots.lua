#!lua name=parley_host_slots_v2

--[[
Requests to one site, of all workers. Both keys of a site are in one slot.

  next  string: Unix milliseconds before which no request starts; expires then
  open  sorted set: requests under way, by the time at which they count as ended; an id begins with the organization
--]]

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

--[[
parley_host_slots_take_v2: starts a request if it may start now.

KEYS[1]  next
KEYS[2]  open
ARGV[1]  id of the request
ARGV[2]  milliseconds between the starts of two requests
ARGV[3]  requests at the same time
ARGV[4]  milliseconds after which the request counts as ended
ARGV[5]  organization
ARGV[6]  requests of the organization at the same time
Returns  0 if it started; else milliseconds after which to try again
--]]
local function take(keys, args)
  local time = now()
  local wait = tonumber(redis.call('GET', keys[1]) or 0) - time
  if wait > 0 then
    return wait
  end
  redis.call('ZREMRANGEBYSCORE', keys[2], '-inf', time)
  if redis.call('ZCARD', keys[2]) >= tonumber(args[3]) then
    return 100
  end
  local own = 0
  for _, id in ipairs(redis.call('ZRANGE', keys[2], 0, -1)) do
    if string.sub(id, 1, #args[5]) == args[5] then
      own = own + 1
    end
  end
  if own >= tonumber(args[6]) then
    return 100
  end
  redis.call('ZADD', keys[2], time + tonumber(args[4]), args[1])
  redis.call('PEXPIRE', keys[2], args[4])
  if tonumber(args[2]) > 0 then
    redis.call('SET', keys[1], time + tonumber(args[2]), 'PX', args[2])
  end
  return 0
end

--[[
parley_host_slots_end_v2: a request has ended.

KEYS[1]  open
ARGV[1]  id of the request
Returns  1, or 0 if it counted as ended already
--]]
local function finish(keys, args)
  return redis.call('ZREM', keys[1], args[1])
end

redis.register_function('parley_host_slots_take_v2', take)
redis.register_function('parley_host_slots_end_v2', finish)
