-- FAIL. Items of six: prefix, id and secret of a token, the number of attempts that the caller has
-- seen, delay in ms (empty: no more attempts), reason. Each result is {state, due}; 'again' if the
-- number of attempts is another one; or false for a token that is not of a live lease.

local ARGS = 6

local function fail(at)
    local id, delay, reason = ARGV[at + 1], tonumber(ARGV[at + 4]), ARGV[at + 5]
    local member = lease_of(ARGV[at], id, ARGV[at + 2])
    if not member then return false end
    local r, a = read_record(call('HGET', REC, id)), read_att(id)
    if a.attempts ~= tonumber(ARGV[at + 3]) then return 'again' end
    end_lease(member, r.due)
    a.attempts = a.attempts + 1
    note(a, 0, reason)
    if not delay then
        finish(id, r.prefix, DEAD, reason, a)
        return {DEAD, 0}
    end
    if r.expiry ~= 0 and now + delay >= r.expiry then
        finish(id, r.prefix, EXPIRED, 'expired', a)
        return {EXPIRED, 0}
    end
    write_att(id, a)
    move(id, r, now + delay)
    return {SCHEDULED, r.due}
end

local results, count = {}, 0
for at = 2, #ARGV, ARGS do
    local verdict = fail(at)
    if type(verdict) == 'table' then count = count + 1 end
    results[#results + 1] = verdict
end
if count > 0 then call('HINCRBY', ST, 'failed', count) end
return reply(results)
