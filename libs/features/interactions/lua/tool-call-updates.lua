#!lua name=parley_tool_call_updates_v1

--[[
The last update of each tool call that runs in a channel. Both keys of a channel are in one slot:

  documents  hash: tool call id -> '<sequence> <JSON>'
  expiry     sorted set: tool call id, scored by when its update is forgotten (Unix ms)
--]]

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

--[[
parley_tool_call_update_put_v1: keeps an update, unless one with the same or a higher sequence is kept.

KEYS[1]  documents
KEYS[2]  expiry
ARGV[1]  tool call id
ARGV[2]  sequence of the update (an integer that a double holds)
ARGV[3]  the update, JSON
ARGV[4]  milliseconds that it is kept
ARGV[5]  tool calls that a channel may have; beyond it, the one that would be forgotten next is
Returns  the JSON that is kept after that
--]]
local function put(keys, args)
  local now = now_ms()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '-inf', now)) do
    redis.call('HDEL', keys[1], id)
    redis.call('ZREM', keys[2], id)
  end
  local known = redis.call('HGET', keys[1], args[1])
  if known then
    local space = string.find(known, ' ', 1, true)
    if tonumber(string.sub(known, 1, space - 1)) >= tonumber(args[2]) then
      return string.sub(known, space + 1)
    end
  end
  redis.call('HSET', keys[1], args[1], args[2] .. ' ' .. args[3])
  redis.call('ZADD', keys[2], now + tonumber(args[4]), args[1])
  if redis.call('ZCARD', keys[2]) > tonumber(args[5]) then
    redis.call('HDEL', keys[1], redis.call('ZPOPMIN', keys[2])[1])
  end
  redis.call('PEXPIRE', keys[1], args[4])
  redis.call('PEXPIRE', keys[2], args[4])
  return args[3]
end

--[[
parley_tool_call_update_all_v1: the updates of a channel that are not forgotten yet, oldest first.

KEYS[1]  documents
KEYS[2]  expiry
Returns  list of JSON
--]]
local function all(keys)
  local documents = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys[2], '(' .. now_ms(), '+inf')) do
    local known = redis.call('HGET', keys[1], id)
    if known then
      documents[#documents + 1] = string.sub(known, string.find(known, ' ', 1, true) + 1)
    end
  end
  return documents
end

redis.register_function('parley_tool_call_update_put_v1', put)
redis.register_function({
  function_name = 'parley_tool_call_update_all_v1',
  callback = all,
  flags = { 'no-writes' },
})
