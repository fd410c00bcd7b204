#!lua name=parley_projection_v1

-- How far the read models of several categories have come. All keys are in one slot. KEYS holds, for each category in
-- the order of the caller, the group: build, checkpoint, complete.

-- Compares decimals without leading zeros, up to 64 bits: too long for a number in Lua.
local function compare_decimals(a, b)
  if #a ~= #b then
    return #a - #b
  end
  return a == b and 0 or (a < b and -1 or 1)
end

-- Compares positions, "commit/prepare".
local function is_later(a, b)
  local a_commit, a_prepare = string.match(a, '^(%d+)/(%d+)$')
  local b_commit, b_prepare = string.match(b, '^(%d+)/(%d+)$')
  local commits = compare_decimals(a_commit, b_commit)
  return commits > 0 or (commits == 0 and compare_decimals(a_prepare, b_prepare) > 0)
end

-- Whether every category is still the build that the caller works on: `args[first]` is the build of the first one.
local function are_current(keys, from, args, first)
  for i = from, #keys, 3 do
    if redis.call('GET', keys[i]) ~= args[first + (i - from) / 3] then
      return false
    end
  end
  return true
end

-- A checkpoint never moves backwards here: a category that is ahead of the others stays ahead.
local function save_checkpoints(keys, from, position, complete)
  for i = from, #keys, 3 do
    local stored = redis.call('GET', keys[i + 1])
    if position ~= '' and (not stored or is_later(position, stored)) then
      redis.call('SET', keys[i + 1], position)
    end
    if complete then
      redis.call('SET', keys[i + 2], '1')
    end
  end
end

--[[
parley_projection_save_v1: saves how far the categories have come, if their read models are still the ones that were built.

KEYS[1..]   groups
ARGV[1]     the position up to which the log is applied; '' for none
ARGV[2]     '1' once the whole log is in the read models
ARGV[3..]   the builds
Returns     1 saved; 0 some read models were deleted or are being rebuilt: start over from their checkpoints
--]]
local function save(keys, args)
  if not are_current(keys, 1, args, 3) then
    return 0
  end
  save_checkpoints(keys, 1, args[1], args[2] == '1')
  return 1
end

--[[
parley_projection_set_back_v1: moves checkpoints that are later than a position back to it.

KEYS[1..]   groups
ARGV[1]     the position; '' for the start of the log
ARGV[2..]   the builds
Returns     as parley_projection_save_v1
--]]
local function set_back(keys, args)
  if not are_current(keys, 1, args, 2) then
    return 0
  end
  for i = 1, #keys, 3 do
    local stored = redis.call('GET', keys[i + 1])
    if args[1] == '' then
      redis.call('DEL', keys[i + 1])
    elseif stored and is_later(stored, args[1]) then
      redis.call('SET', keys[i + 1], args[1])
    end
  end
  return 1
end

-- A partition is stored as "<checkpoint> <position>"; a checkpoint begins with the number that orders checkpoints.
local function read_partition(text)
  local checkpoint, position = string.match(text, '^(%S+) (%S+)$')
  return checkpoint, position
end

local function ordinal(checkpoint)
  return string.match(checkpoint, '^%d+')
end

--[[
parley_partitions_hand_over_v1: marks the read models as complete, and resumes them from partitions from now on.

KEYS[1]     hash of the partitions
KEYS[2..]   groups
ARGV[1]     the combined name of the builds
ARGV[2]     the handover that the caller has seen, '' for none
ARGV[3]     the name of this one: the combined name, '/', and a unique part
ARGV[4]     the position up to which the whole log is applied
ARGV[5]     how long the hash is kept when no projector saves to it, in seconds
ARGV[6]     the number of categories; their builds follow
then        pairs: partition, checkpoint
Returns     1 done; 0 the builds or the handover have changed: read them again
Replaces the hash as a whole, because checkpoints of one handover belong to one state of the topic: a member that has not
noticed the new handover cannot mix the two.
--]]
local function hand_over(keys, args)
  local handover = redis.call('HGET', keys[1], 'handover') or ''
  -- Of builds that were deleted since.
  if string.sub(handover, 1, #args[1] + 1) ~= args[1] .. '/' then
    handover = ''
  end
  if handover ~= args[2] or not are_current(keys, 2, args, 7) then
    return 0
  end
  redis.call('DEL', keys[1])
  redis.call('HSET', keys[1], 'handover', args[3])
  for i = 7 + tonumber(args[6]), #args, 2 do
    redis.call('HSET', keys[1], args[i], args[i + 1] .. ' ' .. args[4])
  end
  redis.call('EXPIRE', keys[1], args[5])
  save_checkpoints(keys, 2, args[4], true)
  return 1
end

--[[
parley_partitions_save_v1: saves the checkpoints of partitions, and with them the least of all as that of the categories.

KEYS        as parley_partitions_hand_over_v1
ARGV[1]     the handover that the checkpoints belong to
ARGV[2]     how long the hash is kept, in seconds
ARGV[3]     the number of categories; their builds follow
then        of each partition four: its name; the checkpoint that the caller knows to be saved; the new
            checkpoint; its position
Returns     the least position; or false: the builds or the handover have changed, or a stored checkpoint is lower than the
            saved one: Redis lost writes, and the caller resumes from what is stored
Keeps the larger of two values: each is true on its own, whichever member saves it and however late.
--]]
local function save_partitions(keys, args)
  if redis.call('HGET', keys[1], 'handover') ~= args[1] or not are_current(keys, 2, args, 4) then
    return false
  end
  local first = 4 + tonumber(args[3])
  for i = first, #args, 4 do
    local stored = redis.call('HGET', keys[1], args[i])
    if not stored or compare_decimals(ordinal(read_partition(stored)), ordinal(args[i + 1])) < 0 then
      return false
    end
  end
  for i = first, #args, 4 do
    local checkpoint, position = read_partition(redis.call('HGET', keys[1], args[i]))
    if compare_decimals(ordinal(args[i + 2]), ordinal(checkpoint)) >= 0 then
      checkpoint = args[i + 2]
    end
    if is_later(args[i + 3], position) then
      position = args[i + 3]
    end
    redis.call('HSET', keys[1], args[i], checkpoint .. ' ' .. position)
  end
  redis.call('EXPIRE', keys[1], args[2])
  local least
  local all = redis.call('HGETALL', keys[1])
  for i = 1, #all, 2 do
    if all[i] ~= 'handover' then
      local _, position = read_partition(all[i + 1])
      if not least or is_later(least, position) then
        least = position
      end
    end
  end
  save_checkpoints(keys, 2, least, false)
  return least
end

redis.register_function('parley_projection_save_v1', save)
redis.register_function('parley_projection_set_back_v1', set_back)
redis.register_function('parley_partitions_hand_over_v1', hand_over)
redis.register_function('parley_partitions_save_v1', save_partitions)
