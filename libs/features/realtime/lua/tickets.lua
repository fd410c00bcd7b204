#!lua name=parley_tickets_v3

--[[
Tickets for websockets. One key per ticket, with its SHA-256 as the name: tickets cannot be recovered from Redis.

  ticket  string: the grant of the ticket, JSON; deleted when the ticket is used or expires
--]]

--[[
parley_ticket_issue_v3: stores a ticket until it expires by this server's own clock.

KEYS[1]  ticket
ARGV[1]  grant, JSON
ARGV[2]  lifetime in milliseconds
Returns  Unix milliseconds at which it expires; 0 if the ticket exists already
--]]
local function issue(keys, args)
  local time = redis.call('TIME')
  local expires = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(args[2])
  if redis.call('SET', keys[1], args[1], 'NX', 'PXAT', expires) then
    return expires
  end
  return 0
end

--[[
parley_ticket_take_v3: takes tickets, each of them once, also if it is given twice.

KEYS     tickets, at most 1,000
Returns  their grants, in order; nil for a ticket that is unknown, used or expired
--]]
local function take(keys)
  local grants = redis.call('MGET', unpack(keys))
  redis.call('DEL', unpack(keys))
  local seen = {}
  for index, key in ipairs(keys) do
    if seen[key] then
      grants[index] = false
    end
    seen[key] = true
  end
  return grants
end

redis.register_function('parley_ticket_issue_v3', issue)
redis.register_function('parley_ticket_take_v3', take)
