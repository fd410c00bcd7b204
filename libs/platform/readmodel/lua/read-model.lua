#!lua name=parley_read_model_v8

-- Sets the keys after the first one. In one command for many: to call a command costs more than to copy a small value.
local function set_all(keys, args, count)
  local pairs, last = {}, 0
  for i = 1, count do
    pairs[last + 1] = keys[i + 1]
    last = last + 2
    pairs[last] = args[i + 3]
  end
  -- Not more at once than Lua's stack holds.
  for first = 1, last, 1000 do
    redis.call('MSET', unpack(pairs, first, math.min(first + 999, last)))
  end
end

-- Writes one entity to the sorted indexes of a list, guarded by revision: see parley_index_v8.
local function index(members, prefix, member, entry)
  local facets = string.gmatch(entry, '%S+')
  local revision = tonumber(facets())
  local known = redis.call('HGET', members, member)
  local had = {}
  if known then
    local words = string.gmatch(known, '%S+')
    if tonumber(words()) >= revision then
      return 0
    end
    for facet in words do
      had[facet] = true
    end
  end
  for facet in facets do
    if had[facet] then
      had[facet] = nil
    else
      redis.call('ZADD', prefix .. facet, 0, member)
    end
  end
  for facet in pairs(had) do
    redis.call('ZREM', prefix .. facet, member)
  end
  redis.call('HSET', members, member, entry)
  return 1
end

--[[
parley_index_v8: writes one entity to the sorted indexes of a list, guarded by revision.

KEYS[1]     hash: entity id -> "<revision> <facet> <facet> ...", of each listed entity
ARGV[1]     prefix of the index keys: an index is the sorted set <prefix><facet>. These keys carry the
            hash tag of KEYS[1]; they are not declared, because only the hash tells which
            ones the entity leaves
ARGV[2]     entity id; indexes are ordered by it (all scores are 0)
ARGV[3]     the new value in the hash: the revision that the facets reflect, and the facets; none removes the entity from
            the list
Returns     1 written, 0 a newer or the same revision was there already
Guarded because any process writes it, in any order, before the entity itself: an older write that arrives late must not
return an entity to a list that it has left.
--]]
local function index_alone(keys, args)
  return index(keys[1], args[1], args[2], args[3])
end

-- For a function that applies an entity: writes the entity to its lists first, because the revision of an entity implies
-- that its lists contain it. If Redis refuses an entry, the entity is not applied either.
local function after_lists(apply_entity)
  return function(keys, args)
    for _ = 1, tonumber(table.remove(args)) do
      local entry = table.remove(args)
      local member = table.remove(args)
      local prefix = table.remove(args)
      index(table.remove(keys), prefix, member, entry)
    end
    return apply_entity(keys, args)
  end
end

--[[
parley_apply_v8: writes the results of a run of events of one stream for one entity, guarded by revision.

KEYS[1]     the entity's revision key: the stream revision that its other keys reflect
KEYS[2..]   the entity's other keys, all in the slot of KEYS[1]
then        on one server, the hashes of the entity's lists, each as KEYS[1] of parley_index_v8
ARGV[1]     revision of the first event of the run
ARGV[2]     revision of the last event of the run
ARGV[3]     the number of leading SET operations
ARGV[4..]   the values of these: of KEYS[2], of KEYS[3], ... Most writes are of this kind, and most of
            the cost is the number of arguments
then        further operations, each: command, index into KEYS, number of arguments, arguments...
            Absolute writes only (SET, DEL, HSET, HDEL, ZADD, ZREM ...): results do not depend on earlier
            values. SETRANGE is absolute as well, because earlier events determine the bytes before it.
then        for each list the arguments of parley_index_v8, and in the end the number of lists: 0 in a cluster
Returns     { outcome, stored revision }, the outcome being
             1 APPLIED    the run (or the part of it that was new) is written
             0 DUPLICATE  the whole run was there already; nothing was done
            -1 GAP        events between the stored revision and the run are missing; nothing was done. Or the
                          bytes before a SETRANGE are missing: the revision is deleted, so all events are
Errors      those of the commands. Redis does not roll a script back, so the revision is written last:
            a run that failed half way is applied again as a whole.
--]]
local function apply(keys, args)
  local stored = tonumber(redis.call('GET', keys[1]) or '-1')
  local first = tonumber(args[1])
  local last = tonumber(args[2])
  if last <= stored then
    return { 0, stored }
  end
  if first > stored + 1 then
    return { -1, stored }
  end
  local set = tonumber(args[3])
  set_all(keys, args, set)
  local at = 4 + set
  local size = #args
  while at <= size do
    local command, key, count = args[at], keys[tonumber(args[at + 1])], tonumber(args[at + 2])
    if command == 'SETRANGE' and redis.call('STRLEN', key) < tonumber(args[at + 3]) then
      redis.call('DEL', keys[1])
      return { -1, -1 }
    end
    redis.call(command, key, unpack(args, at + 3, at + 2 + count))
    at = at + 3 + count
  end
  redis.call('SET', keys[1], args[2])
  return { 1, last }
end

-- Whether the connection that subscribes to `witness` is the only subscriber of the topic: it subscribes to both. False
-- with replicas, which publish what their master publishes: a master that was demoted keeps its subscribers.
local function is_alone(topic, witness)
  local counts = redis.pcall('PUBSUB', 'SHARDNUMSUB', topic, witness)
  if counts[2] ~= 1 or counts[4] ~= 1 then
    return false
  end
  local replication = redis.pcall('INFO', 'replication')
  return type(replication) == 'string' and string.find(replication, 'connected_slaves:0', 1, true) ~= nil
end

--[[
parley_apply_and_publish_v8: the same, and publishes a message in the same step.

KEYS        those of parley_apply_v8, with the topic (sharded publish and subscribe) before the lists, in the slot of the
            entity
ARGV        those of parley_apply_v8, with these before the lists: a topic to which only the caller's connection for
            subscriptions subscribes, if it subscribes to KEYS' topic, too, else ''; '1' to publish for a DUPLICATE too,
            else '0'; the message
Returns     as parley_apply_v8, with a third member 1 if the caller is the only subscriber: nothing is published then,
            because the caller has the message. Nothing is published for a GAP
Publishes here so that a subscriber finds the event in the read model, and no applied event stays unpublished because a
process died in between. Counts subscribers here so that a process that subscribes at any time is either counted, or
finds the event in the read model afterwards.
--]]
local function apply_and_publish(keys, args)
  local topic = table.remove(keys)
  local message = table.remove(args)
  local of_duplicates = table.remove(args) == '1'
  local witness = table.remove(args)
  local outcome = apply(keys, args)
  if outcome[1] == 1 or (outcome[1] == 0 and of_duplicates) then
    if witness ~= '' and is_alone(topic, witness) then
      outcome[3] = 1
    else
      redis.call('SPUBLISH', topic, message)
    end
  end
  return outcome
end

--[[
parley_remove_list_v8: removes a list as a whole: the hash and its indexes.

KEYS[1]     hash, as for parley_index_v8
ARGV[1]     prefix of the index keys, as for parley_index_v8
ARGV[2..]   index keys that were found, in case the hash lacks them
Returns     how many keys were removed
At once, because parley_index_v8 skips the indexes that the hash contains for an entity: a hash without its index would
keep the entity out of the list.
--]]
local function remove_list(keys, args)
  local indexes = {}
  for i = 2, #args do
    indexes[args[i]] = true
  end
  for _, known in ipairs(redis.call('HVALS', keys[1])) do
    local words = string.gmatch(known, '%S+')
    words() -- the revision
    for facet in words do
      indexes[args[1] .. facet] = true
    end
  end
  local removed = redis.call('UNLINK', keys[1])
  for index in pairs(indexes) do
    removed = removed + redis.call('UNLINK', index)
  end
  return removed
end

--[[
parley_lookup_v8: reads parts of one entity together with the revision that they reflect.

KEYS[1]     the entity's revision key
KEYS[2..]   hashes and sorted sets of the same entity
ARGV        triples: 'field', index of a hash in KEYS, field; or
            'count', index of a sorted set in KEYS, score
Returns     { stored revision or nil, for each triple the field's value or nil, or how many members have the score }
--]]
local function lookup(keys, args)
  local found = { redis.call('GET', keys[1]) }
  for at = 1, #args, 3 do
    local key, what = keys[tonumber(args[at + 1])], args[at + 2]
    if args[at] == 'count' then
      found[#found + 1] = redis.call('ZCOUNT', key, what, what)
    else
      found[#found + 1] = redis.call('HGET', key, what)
    end
  end
  return found
end

redis.register_function({ function_name = 'parley_lookup_v8', callback = lookup, flags = { 'no-writes' } })
redis.register_function('parley_apply_v8', after_lists(apply))
redis.register_function('parley_apply_and_publish_v8', after_lists(apply_and_publish))
redis.register_function('parley_index_v8', index_alone)
redis.register_function('parley_remove_list_v8', remove_list)
