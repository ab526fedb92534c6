-- Ends what is past, and finds out what is next: for a node that was woken by the time. The results
-- are plans that ring now, in order: id, record, `att`, how late a ring is a misfire. Argument: how
-- many of them to leave out, which the node cannot compute (none: 0).

local PLANS_MAX = 10

local results = {}
must_look = true
if is_known and calm > now then sweep() end
if not is_known then return reply(results) end
local misfire_after = tonumber(call('HGET', CFG, 'misfire_after_ms') or 60000)
local members = call('ZRANGEBYSCORE', PLAN, '-inf', now_text, 'LIMIT',
                     tonumber(ARGV[2] or 0), PLANS_MAX)
for i, member in ipairs(members) do
    local id = string.sub(member, 9)
    results[i] = {id, call('HGET', REC, id), call('HGET', ATT, id), misfire_after}
end
return reply(results)
