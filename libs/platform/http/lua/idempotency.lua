#!lua name=parley_idempotency_v4

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

--[[
parley_idempotency_begin_v4: takes an idempotency key, or returns its state.

KEYS[1]  hash: fingerprint, begun_at (ms), lease, lease_until (ms), position
KEYS[2]  hash: status, headers, body of the reply, which may expire before the first one
ARGV[1]  fingerprint of the request
ARGV[2]  lease to take
ARGV[3]  milliseconds that the lease holds
ARGV[4]  milliseconds that the key is remembered
Returns  { 'started', begun_at or '', position or '' } | { 'in_flight', milliseconds until the lease ends }
         | { 'mismatch' } | { 'completed', status, headers, body }
         begun_at (ms): when an earlier request took the key whose reply is not known
         position: of what that request wrote, if its reply has expired
--]]
local function begin(keys, args)
  local now = now_ms()
  local known = redis.call('HMGET', keys[1], 'fingerprint', 'lease_until', 'begun_at', 'position')
  if known[1] and known[1] ~= args[1] then
    return { 'mismatch' }
  end
  local reply = redis.call('HMGET', keys[2], 'status', 'headers', 'body')
  if known[1] and reply[1] then
    return { 'completed', reply[1], reply[2], reply[3] }
  end
  if known[2] and tonumber(known[2]) > now then
    return { 'in_flight', tonumber(known[2]) - now }
  end
  redis.call('HSET', keys[1], 'fingerprint', args[1], 'lease', args[2], 'lease_until', now + tonumber(args[3]))
  if not known[3] then
    redis.call('HSET', keys[1], 'begun_at', now)
  end
  redis.call('PEXPIRE', keys[1], args[4])
  return { 'started', known[3] or '', known[4] or '' }
end

--[[
parley_idempotency_renew_v4: extends a lease, if it still holds the key.

KEYS[1]  as above
ARGV[1]  lease
ARGV[2]  milliseconds that the lease holds from now on
Returns  1 extended, 0 the lease is no longer the holder's
--]]
local function renew(keys, args)
  if redis.call('HGET', keys[1], 'lease') ~= args[1] then
    return 0
  end
  redis.call('HSET', keys[1], 'lease_until', now_ms() + tonumber(args[2]))
  return 1
end

--[[
parley_idempotency_complete_v4: remembers the answer, if the lease still holds the key.

KEYS[1..2]  as for begin
ARGV[1]     lease
ARGV[2..4]  status, headers (JSON), body
ARGV[5]     milliseconds that the key is remembered
ARGV[6]     milliseconds that the reply is remembered; 0 for not at all
ARGV[7]     position of what the request wrote, or ''
Returns     1 remembered, 0 the lease is no longer the holder's
--]]
local function complete(keys, args)
  if redis.call('HGET', keys[1], 'lease') ~= args[1] then
    return 0
  end
  if tonumber(args[6]) > 0 then
    redis.call('HSET', keys[2], 'status', args[2], 'headers', args[3], 'body', args[4])
    redis.call('PEXPIRE', keys[2], args[6])
  end
  if args[7] ~= '' then
    redis.call('HSET', keys[1], 'position', args[7])
  end
  redis.call('HDEL', keys[1], 'lease', 'lease_until')
  redis.call('PEXPIRE', keys[1], args[5])
  return 1
end

--[[
parley_idempotency_abandon_v4: lets the key go. Its fingerprint stays, so that a retry must be the same request.

KEYS[1]  as above
ARGV[1]  lease
Returns  1 let go, 0 the lease is no longer the holder's
--]]
local function abandon(keys, args)
  if redis.call('HGET', keys[1], 'lease') ~= args[1] then
    return 0
  end
  redis.call('HDEL', keys[1], 'lease', 'lease_until')
  return 1
end

redis.register_function('parley_idempotency_begin_v4', begin)
redis.register_function('parley_idempotency_renew_v4', renew)
redis.register_function('parley_idempotency_complete_v4', complete)
redis.register_function('parley_idempotency_abandon_v4', abandon)
