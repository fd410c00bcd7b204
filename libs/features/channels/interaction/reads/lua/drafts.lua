#!lua name=parley_drafts_v1

--[[
Drafts: unfinished texts of incomplete interactions. All keys of a channel are in one slot:

  text        string, one per interaction
  lengths     hash: sequence -> '<length in UTF-16 code units> <flags of its frames>'
  incomplete  sorted set of the read model: sequences of the interactions that are not complete
  documents   hash of the read model: sequence -> the interaction, JSON
  topic       sharded pub/sub channel of the frames

The number of incomplete interactions of a channel is limited, and completing one deletes its text in the same call,
so the number of texts is limited as well.
--]]

--[[
parley_draft_put_v1: appends to a text or replaces it, and publishes the frame.

KEYS[1..5]  text, lengths, incomplete, documents, topic
ARGV[1]     sequence of the interaction
ARGV[2]     expected length of the text; '' replaces the text
ARGV[3]     the text to append
ARGV[4]     its length in UTF-16 code units
ARGV[5]     TTL of a text after its last change, in milliseconds
ARGV[6]     maximum size of a text in bytes
ARGV[7]     flags of its frames for an interaction without a parent
ARGV[8]     flags of its frames for an interaction with a parent
ARGV[9]     key of its frames
ARGV[10]    the frame, JSON
Returns     { outcome, length of the text }; outcomes:
             1  written and published
             0  the text has another length
            -1  the interaction is complete
            -2  the interaction does not exist
            -3  the text would be too long
--]]
local function put(keys, args)
  local sequence, expected = args[1], args[2]
  if not redis.call('ZSCORE', keys[3], sequence) then
    return { redis.call('HEXISTS', keys[4], sequence) == 1 and -1 or -2, 0 }
  end
  local length, flags = 0, nil
  local bytes = redis.call('STRLEN', keys[1])
  local known = redis.call('HGET', keys[2], sequence)
  if known and redis.call('EXISTS', keys[1]) == 1 then
    local held
    held, flags = string.match(known, '^(%d+) (%d+)$')
    length = tonumber(held)
  end
  if expected ~= '' and tonumber(expected) ~= length then
    return { 0, length }
  end
  if expected == '' then
    bytes = 0
  end
  if bytes + #args[3] > tonumber(args[6]) then
    return { -3, length }
  end
  if not flags then
    local interaction = cjson.decode(redis.call('HGET', keys[4], sequence))
    flags = interaction.parent_span_id == cjson.null and args[7] or args[8]
  end
  if expected == '' then
    redis.call('SET', keys[1], args[3], 'PX', args[5])
    length = 0
  else
    redis.call('APPEND', keys[1], args[3])
    redis.call('PEXPIRE', keys[1], args[5])
  end
  length = length + tonumber(args[4])
  redis.call('HSET', keys[2], sequence, string.format('%d %s', length, flags))
  redis.call('PEXPIRE', keys[2], args[5])
  redis.call('SPUBLISH', keys[5], 'X ' .. flags .. ' ' .. args[9] .. ' ' .. args[10])
  return { 1, length }
end

--[[
parley_drafts_all_v1: the texts of a channel.

KEYS[1]  lengths
ARGV[1]  prefix of the keys of the texts, in the slot of KEYS[1]; not declared, because only the hash lists them
Returns  flat list of sequence, flags and text of each draft
--]]
local function all(keys, args)
  local found = {}
  local known = redis.call('HGETALL', keys[1])
  for at = 1, #known, 2 do
    local text = redis.call('GET', args[1] .. known[at])
    if text then
      found[#found + 1] = known[at]
      found[#found + 1] = string.match(known[at + 1], '%d+$')
      found[#found + 1] = text
    end
  end
  return found
end

redis.register_function('parley_draft_put_v1', put)
redis.register_function({
  function_name = 'parley_drafts_all_v1',
  callback = all,
  flags = { 'no-writes' },
})
