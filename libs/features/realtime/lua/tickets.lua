#!lua name=parley_tickets_v2

--[[
Tickets for websockets. One key per ticket, with its SHA-256 as the name: tickets cannot be recovered from Redis.

  ticket  string: the grant of the ticket, JSON; deleted when the ticket is used or expires
--]]

--[[
parley_ticket_issue_v2: stores a ticket until it expires by this server's own clock.

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

redis.register_function('parley_ticket_issue_v2', issue)
