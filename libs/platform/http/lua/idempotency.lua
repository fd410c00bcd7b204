#!lua name=parley_idempotency_v5

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

--[[
parley_idempotency_absent_v5: whether the read model of an entity lacks a field.

KEYS[1]  the entity's revision key: the stream revision that its other keys reflect
KEYS[2]  a hash of the entity
ARGV[1]  field
Returns  the revision as of which the hash lacks the field, '-1' for an entity that is not there; '' if it has the field
--]]
local function absent(keys, args)
  if redis.call('HEXISTS', keys[2], args[1]) == 1 then
    return ''
  end
  return redis.call('GET', keys[1]) or '-1'
end

--[[
parley_idempotency_begin_v5: takes an idempotency key, or returns its state.

KEYS[1]  hash: fingerprint, begun_at (ms), lease, lease_until (ms), position
KEYS[2]  hash: status, headers, body of the reply, which may expire before the first one
KEYS[3..4], ARGV[5]  if given: the keys and the field of parley_idempotency_absent_v5
ARGV[1]  fingerprint of the request
ARGV[2]  lease to take
ARGV[3]  milliseconds that the lease holds
ARGV[4]  milliseconds that the key is remembered
Returns  { 'started', begun_at or '', position or '', absent } | { 'in_flight', milliseconds until the lease ends }
         | { 'mismatch' } | { 'completed', status, headers, body }
         begun_at (ms): when an earlier request took the key whose reply is not known
         position: of what that request wrote, if its reply has expired
         absent: what parley_idempotency_absent_v5 returns; '' without its keys
--]]
local function begin(keys, args)
  local now = now_ms()
  local known = redis.call('HMGET', keys[1], 'fingerprint', 'lease_until', 'begun_at', 'position')
  if known[1] then
    if known[1] ~= args[1] then
      return { 'mismatch' }
    end
    local reply = redis.call('HMGET', keys[2], 'status', 'headers', 'body')
    if reply[1] then
      return { 'completed', reply[1], reply[2], reply[3] }
    end
    if known[2] and tonumber(known[2]) > now then
      return { 'in_flight', tonumber(known[2]) - now }
    end
  end
  -- Before the first write: a call that fails after it would leave the key taken.
  local absence = keys[3] and absent({ keys[3], keys[4] }, { args[5] }) or ''
  local lease_until = now + tonumber(args[3])
  redis.call('HSET', keys[1], 'fingerprint', args[1], 'lease', args[2], 'lease_until', lease_until,
    'begun_at', known[3] or now)
  redis.call('PEXPIRE', keys[1], args[4])
  return { 'started', known[3] or '', known[4] or '', absence }
end

--[[
parley_idempotency_renew_v5: extends a lease, if it still holds the key.

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
parley_idempotency_complete_v5: remembers the answer, if the lease still holds the key.

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
parley_idempotency_abandon_v5: lets the key go. Its fingerprint stays, so that a retry must be the same request.

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

redis.register_function({ function_name = 'parley_idempotency_absent_v5', callback = absent, flags = { 'no-writes' } })
redis.register_function('parley_idempotency_begin_v5', begin)
redis.register_function('parley_idempotency_renew_v5', renew)
redis.register_function('parley_idempotency_complete_v5', complete)
redis.register_function('parley_idempotency_abandon_v5', abandon)
