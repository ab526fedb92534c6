-- RESCHEDULE. Items of three: id, when (i: in, a: at), ms. Each result is 1, or 0 if there is no
-- such timer that is scheduled or ready.

local ARGS = 3

local function reschedule(at)
    local id, ms = ARGV[at], tonumber(ARGV[at + 2])
    local r, state = look(id)
    if not r or state > READY then return 0 end
    take_out(id, r, state)
    local due = ARGV[at + 1] == 'i' and now + ms or ms
    if r.expires > 0 then r.expiry = due + r.expires end
    move(id, r, due)
    if is_expired(r) then expire(id) end
    return 1
end

local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = cfg.known and reschedule(at) or 0
end
return reply(results)
