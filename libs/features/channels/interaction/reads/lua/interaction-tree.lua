#!lua name=parley_interaction_tree_v2

--[[
parley_interaction_descendants_v2: finds the descendants of a span of a channel, each parent before its children.

KEYS[1]  children   sorted set, all scores 0: '<parent span id> <sequence, 12 digits>'
KEYS[2]  documents  hash: sequence -> the interaction, JSON
ARGV[1]  span id
ARGV[2]  excludes interactions from this sequence on
ARGV[3]  largest number of descendants
ARGV[4]  largest sum of their bytes; the first descendant beyond it ends the search
Returns  their sequences
A function, because each level of the tree depends on the one above it and would cost a round trip.
Bytes are limited, because Redis serves nothing else while the function reads documents.
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
        -- The last match is the interaction's own: only members that the server names follow it, and quotation marks
        -- inside strings are escaped. Span ids contain neither quotation marks nor backslashes.
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
