-- EXPLAIN. Argument: id. The result is false if there is no such timer; or the timer as of GET, the
-- lease that a worker of ours has (its length in ms, 0: none), whether the topic is paused (1 or
-- 0), the number of such leases, and how many timers are due before this one.
--
-- A lease of ours ends when its timer is due, so there are few to look at.

local LOOKED = 1000
local id = ARGV[3]

local function lease_of(due)
    for _, secret in ipairs(call('ZRANGEBYSCORE', ENDS, due, due, 'LIMIT', 0, LOOKED)) do
        local entry = call('HGET', LEASES, secret)
        local lease = entry and read_lease(entry)
        if lease and lease.id == id and lease.stop > now and leased(lease) then
            return lease.length
        end
    end
    return 0
end

local score = score_of(id)
local envelope = score and call('HGET', PAYLOADS, id)
if not envelope then return reply({false}) end
local due = to_ms(score)
return reply({{id, due, envelope}, lease_of(due), cfg.paused and 1 or 0, call('ZCARD', ENDS),
              call('ZRANK', TIMELINE, id)})
