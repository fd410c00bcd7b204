#!lua name=parley_interaction_tree_v2

--[[
parley_interaction_descendants_v2: finds all that hangs below a span of a channel, a parent before what hangs
below it.

KEYS[1]  children   sorted set, all scores 0: '<parent span id> <sequence, 12 digits>'
KEYS[2]  documents  hash: sequence -> the interaction, JSON
ARGV[1]  span id
ARGV[2]  interactions from this sequence on are left out
ARGV[3]  at most so many are found
ARGV[4]  bytes that they may have together; the first that does not fit ends the search
Returns  their sequences
Why here: a level of the tree is known only when the one above it is, and each would be a round trip.
Why bytes: all of Redis waits while documents are looked into here.
--]]
local function descendants(keys, args)
  local before, most, left = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local found, spans, at = {}, { args[1] }, 1
  while at <= #spans and #found < most do
    local first, last = '[' .. spans[at] .. ' ', '(' .. spans[at] .. ' \255'
    for _, member in ipairs(redis.call('ZRANGE', keys[1], first, last, 'BYLEX', 'LIMIT', 0, most - #found)) do
      local sequence = tonumber(string.sub(member, -12))
      local size = sequence < before and redis.call('HSTRLEN', keys[2], sequence) or 0
      if size > left then
        return found
      end
      if size > 0 then
        left = left - size
        local document = redis.call('HGET', keys[2], sequence)
        found[#found + 1] = sequence
        -- The last of its members of this name is its own: what stands behind it has names of ours, and a
        -- quotation mark inside a text has a backslash before it. Span ids have none of either.
        spans[#spans + 1] = string.match(document, '.*"span_id":"([^"]*)"')
      end
    end
    at = at + 1
  end
  return found
end

redis.register_function({
  function_name = 'parley_interaction_descendants_v2',
  callback = descendants,
  flags = { 'no-writes' },
})
