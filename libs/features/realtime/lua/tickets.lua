#!lua name=parley_tickets_v1

--[[
Tickets for sockets. One key each, named by the ticket's SHA-256: who can read Redis cannot use a ticket.

  ticket  string: what the ticket stands for, as JSON; gone when the ticket has been used or is too old
--]]

--[[
parley_ticket_issue_v1: keeps a ticket for a while, by this server's own clock.

KEYS[1]  ticket
ARGV[1]  what it stands for, JSON
ARGV[2]  milliseconds that it is valid
Returns  Unix milliseconds at which it expires; 0 if there is such a ticket already
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
parley_ticket_redeem_v1: takes a ticket away and tells what it stands for. Of many callers one gets it.

KEYS[1]  ticket
Returns  JSON, or nil
--]]
local function redeem(keys)
  return redis.call('GETDEL', keys[1])
end

redis.register_function('parley_ticket_issue_v1', issue)
redis.register_function('parley_ticket_redeem_v1', redeem)
