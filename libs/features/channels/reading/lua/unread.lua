#!lua name=parley_unread_v1

--[[
parley_unread_v1: counts the messages of a channel that a user has not read.

KEYS[1]  hash: field -> sequence up to which nothing is unread
KEYS[2]  sorted set: the messages, scored by the sequence at which they were complete
ARGV[1]  sequence of the user's marker, 0 without one
ARGV[2..] fields of the user
Returns  list: the sequence up to which the user has read, the number of messages after it
A function, because a message that the user posts between two reads would be counted as unread.
--]]
local function unread(keys, args)
  local read = tonumber(args[1])
  for at = 2, #args do
    read = math.max(read, tonumber(redis.call('HGET', keys[1], args[at]) or '0'))
  end
  return { read, redis.call('ZCOUNT', keys[2], '(' .. string.format('%.0f', read), '+inf') }
end

redis.register_function({
  function_name = 'parley_unread_v1',
  callback = unread,
  flags = { 'no-writes' },
})
