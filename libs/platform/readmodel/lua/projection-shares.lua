#!lua name=parley_projection_shares_v1

-- Of two positions ("commit/prepare", decimals without leading zeros, up to 64 bits: too long for a number of Lua's)
-- the one that is later, or 0 where they are the same.
local function compare_decimals(a, b)
  if #a ~= #b then
    return #a - #b
  end
  return a == b and 0 or (a < b and -1 or 1)
end

local function is_later(a, b)
  local a_commit, a_prepare = string.match(a, '^(%d+)/(%d+)$')
  local b_commit, b_prepare = string.match(b, '^(%d+)/(%d+)$')
  local commits = compare_decimals(a_commit, b_commit)
  return commits > 0 or (commits == 0 and compare_decimals(a_prepare, b_prepare) > 0)
end

-- What is said of a share is stored as "<mark> <position>"; a mark begins with the number that orders marks.
local function read_share(text)
  local mark, position = string.match(text, '^(%S+) (%S+)$')
  return mark, position
end

local function ordinal(mark)
  return string.match(mark, '^%d+')
end

local function save_checkpoint(key, position)
  local stored = redis.call('GET', key)
  if not stored or is_later(position, stored) then
    redis.call('SET', key, position)
    return position
  end
  return stored
end

--[[
parley_hand_over_v1: from now on a complete build is kept up by shares, each from its mark.

KEYS[1..4]  build, checkpoint, complete, shares: all in one slot
ARGV[1]     the build that the caller works on
ARGV[2]     the handover that the caller has seen, '' for none
ARGV[3]     the name of this one: the build, '/', and what nobody else has
ARGV[4]     the position up to which the whole log is applied
ARGV[5..]   pairs: share, mark
Returns     1 done; 0 the build or the handover is another one by now: look again
Why whole: marks of one handover belong to one state of the feed. What the handover before it said is dropped with it,
so that a member that has not noticed cannot mix the two.
--]]
local function hand_over(keys, args)
  if redis.call('GET', keys[1]) ~= args[1] then
    return 0
  end
  local handover = redis.call('HGET', keys[4], 'handover') or ''
  -- Of read models that were emptied by a version that does not know this key.
  if string.sub(handover, 1, #args[1] + 1) ~= args[1] .. '/' then
    handover = ''
  end
  if handover ~= args[2] then
    return 0
  end
  redis.call('DEL', keys[4])
  redis.call('HSET', keys[4], 'handover', args[3])
  for i = 5, #args, 2 do
    redis.call('HSET', keys[4], args[i], args[i + 1] .. ' ' .. args[4])
  end
  save_checkpoint(keys[2], args[4])
  redis.call('SET', keys[3], '1')
  return 1
end

--[[
parley_reach_v1: saves how far shares have come, and with it how far all of them have.

KEYS[1..3]  build, checkpoint, shares: all in one slot
ARGV[1]     the build that the caller works on
ARGV[2]     the handover that its marks belong to
ARGV[3..]   of each share four: its name; the mark that the caller knows to have been saved; the new mark; its position
Returns     the checkpoint; or false: the build or the handover is another one by now, or a share lies before what was
            saved already. Redis lost writes then, and the caller has to go back to what is there
Why the larger of two: each is true on its own, whoever says it and however late.
--]]
local function reach(keys, args)
  if redis.call('GET', keys[1]) ~= args[1] or redis.call('HGET', keys[3], 'handover') ~= args[2] then
    return false
  end
  for i = 3, #args, 4 do
    local stored = redis.call('HGET', keys[3], args[i])
    if not stored or compare_decimals(ordinal(read_share(stored)), ordinal(args[i + 1])) < 0 then
      return false
    end
  end
  for i = 3, #args, 4 do
    local mark, position = read_share(redis.call('HGET', keys[3], args[i]))
    if compare_decimals(ordinal(args[i + 2]), ordinal(mark)) >= 0 then
      mark = args[i + 2]
    end
    if is_later(args[i + 3], position) then
      position = args[i + 3]
    end
    redis.call('HSET', keys[3], args[i], mark .. ' ' .. position)
  end
  local least
  local all = redis.call('HGETALL', keys[3])
  for i = 1, #all, 2 do
    if all[i] ~= 'handover' then
      local _, position = read_share(all[i + 1])
      if not least or is_later(least, position) then
        least = position
      end
    end
  end
  return save_checkpoint(keys[2], least)
end

redis.register_function('parley_hand_over_v1', hand_over)
redis.register_function('parley_reach_v1', reach)
