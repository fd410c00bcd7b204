#!lua name=parley_interaction_page_v1

-- An exclusive bound of a range. Sequences have at most 53 bits, which '%.0f' writes exactly.
local function bound(sequence)
  return string.format('(%.0f', sequence)
end

-- The members of the sorted set between two exclusive bounds, in the order of the page, from an offset. By rank, because
-- `LIMIT` is linear in its offset.
local function range(set, low, high, isAscending, offset, limit)
  local first, last = isAscending and low or high, isAscending and high or low
  local command = isAscending and 'ZRANGEBYSCORE' or 'ZREVRANGEBYSCORE'
  if offset == 0 then
    return redis.call(command, set, bound(first), bound(last), 'LIMIT', 0, limit)
  end
  local head = redis.call(command, set, bound(first), bound(last), 'LIMIT', 0, 1)[1]
  if not head then
    return {}
  end
  local rank = redis.call(isAscending and 'ZRANK' or 'ZREVRANK', set, head) + offset
  return redis.call(isAscending and 'ZRANGE' or 'ZREVRANGE', set, rank, rank + limit - 1)
end

--[[
parley_interaction_page_v1: finds the interactions of a page, and what is needed to read them.

KEYS[1]  revision    the channel's revision key
KEYS[2]  index       sorted set: the sequences of the interactions to list, scored by themselves
KEYS[3]  incomplete  sorted set: the sequences of the incomplete interactions, few, scored likewise
KEYS[4]  marks       sorted set: marks, scored by the sequence of their interaction
ARGV[1]  'asc' or 'desc'
ARGV[2]  exclusive bounds of the list: the lower one
ARGV[3]  and the upper one
ARGV[4]  sequence that the page starts after, in the order of the list; '' for its beginning
ARGV[5]  interactions of the list to skip there
ARGV[6]  largest number of interactions
ARGV[7]  'shown', 'hidden' for a list without incomplete interactions, or 'end' for one that ends before the oldest of them
Returns  { false } if there is no such channel, else
         { revision, length of the list, sequence that it ends before or '', the sequences of the page and of one
           interaction more, the incomplete ones among them, how many marks the interactions of the page have }
         Lists of sequences are texts, separated by blanks: to convert a member of a list costs more.
A function, because the revision belongs to all of it. It reads no documents: as texts of Lua, those of a page cost five
times as much as in a command of their own.
--]]
local function page(keys, args)
  local revision = redis.call('GET', keys[1])
  if not revision then
    return { false }
  end
  local isAscending, low, high = args[1] == 'asc', tonumber(args[2]), tonumber(args[3])
  local hidden, oldest = {}, ''
  if args[7] ~= 'shown' then
    for _, sequence in ipairs(redis.call('ZRANGEBYSCORE', keys[3], bound(low), bound(high))) do
      if redis.call('ZSCORE', keys[2], sequence) then
        hidden[#hidden + 1] = tonumber(sequence)
      end
    end
    if args[7] == 'end' and #hidden > 0 then
      oldest, high, hidden = string.format('%.0f', hidden[1]), hidden[1], {}
    end
  end
  local total = redis.call('ZCOUNT', keys[2], bound(low), bound(high)) - #hidden
  if args[4] ~= '' then
    if isAscending then
      low = math.max(low, tonumber(args[4]))
    else
      high = math.min(high, tonumber(args[4]))
    end
  end
  local offset, wanted = tonumber(args[5]), tonumber(args[6]) + 1
  local members = range(keys[2], low, high, isAscending, offset, wanted + 2 * #hidden)
  -- The offset does not count hidden interactions: as many as there are before it are skipped behind it.
  local skipped, isHidden = 0, {}
  for _, sequence in ipairs(hidden) do
    isHidden[sequence] = true
    local isBehindStart = sequence > low and sequence < high
    local head = tonumber(members[1])
    if head and isBehindStart and (isAscending and sequence < head or not isAscending and sequence > head) then
      skipped = skipped + 1
    end
  end
  local found = {}
  for _, member in ipairs(members) do
    local sequence = tonumber(member)
    if sequence > low and sequence < high and not isHidden[sequence] then
      if skipped > 0 then
        skipped = skipped - 1
      elseif #found < wanted then
        found[#found + 1] = member
      end
    end
  end
  local open, marks = {}, 0
  local last = math.min(#found, wanted - 1)
  if last > 0 then
    local lowest, highest = found[isAscending and 1 or last], found[isAscending and last or 1]
    marks = redis.call('ZCOUNT', keys[4], lowest, highest)
    open = args[7] == 'shown' and redis.call('ZRANGEBYSCORE', keys[3], lowest, highest) or {}
  end
  return { revision, total, oldest, table.concat(found, ' '), table.concat(open, ' '), marks }
end

redis.register_function({
  function_name = 'parley_interaction_page_v1',
  callback = page,
  flags = { 'no-writes' },
})
