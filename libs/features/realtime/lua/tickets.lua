#!lua name=parley_tickets_v1

--[[
Tickets for websockets. One key per ticket, with its SHA-256 as the name: tickets cannot be recovered from Redis.

  ticket  string: the grant of the ticket, JSON; deleted when the ticket is used or expires
--]]

--[[
parley_ticket_issue_v1: stores a ticket until it expires by this server's own clock.

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
parley_ticket_redeem_v1: deletes a ticket and returns its grant, to one of several concurrent callers.

KEYS[1]  ticket
Returns  JSON, or nil
--]]
local function redeem(keys)
  return redis.call('GETDEL', keys[1])
end

redis.register_function('parley_ticket_issue_v1', issue)
redis.register_function('parley_ticket_redeem_v1', redeem)
