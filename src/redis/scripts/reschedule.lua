-- RESCHEDULE. Items of three: id, when (i: in, a: at), ms. Each result is 1, or 0 if there is no
-- such timer that is scheduled or ready.

local ARGS = 3

-- A plan of an interval goes on from its new time.
local function reschedule_plan(id, r, due)
    local _, a, p = find_plan(id)
    displace_plan(id, r)
    r.prefix = make_prefix(string.byte(r.prefix), take_sequence())
    write_record(id, r)
    p.has_next, p.next, p.catching = 1, math.max(due, now), 0
    if p.period > 0 then
        p.has_start, p.start = 1, p.next
    end
    place_plan(id, r, a, p)
    return 1
end

local function reschedule(at)
    local id, ms = ARGV[at], tonumber(ARGV[at + 2])
    local r, state = look(id)
    if not r or state > READY then return 0 end
    local due = ARGV[at + 1] == 'i' and now + ms or ms
    if r.kind == A_PLAN then return reschedule_plan(id, r, due) end
    take_out(id, r, state)
    if r.expires > 0 then r.expiry = due + r.expires end
    move(id, r, due)
    if is_expired(r) then expire(id) end
    return 1
end

local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = is_known and reschedule(at) or 0
end
return reply(results)
