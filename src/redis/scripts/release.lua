-- RELEASE. Items of four: prefix, id and secret of a token, delay in ms (empty: back to the old
-- place). Each result is the new due, or false for a token that is not of a live lease.

local ARGS = 4

local function release(at)
    local id, delay = ARGV[at + 1], tonumber(ARGV[at + 3])
    local member = lease_of(ARGV[at], id, ARGV[at + 2])
    if not member then return false end
    local r = read_record(call('HGET', REC, id))
    end_lease(member, r.due)
    if not delay then
        give_back(id, r)
    else
        move(id, r, now + delay)
        if is_expired(r) then expire(id) end
    end
    return r.due
end

local results, count = {}, 0
for at = 2, #ARGV, ARGS do
    local due = release(at)
    if due then count = count + 1 end
    results[#results + 1] = due
end
if count > 0 then call('HINCRBY', ST, 'released', count) end
return reply(results)
