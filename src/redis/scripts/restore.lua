-- RESTORE: SCHEDULE of a whole timer. Items of five: id, conflict policy, state, record, `att`
-- (empty: none). Each result is 'new', 'kept' or 'taken'. The sequence of the record is 0: the timer
-- gets a new one. Other nodes are told of a restored timer when the whole copy is complete.

local ARGS = 5

-- Puts the member of a timer, whose record is stored, where its state says.
local function place(id, r, state)
    local a = read_att(id)
    if state >= DONE then
        call('ZADD', ENDS[state], print_number(a.finished), end_member(r.prefix, id))
        if retention_of(state) ~= FOREVER then ends(a.finished + retention_of(state)) end
    elseif r.kind == A_PLAN then
        place_plan(id, r, a, read_plan(a))
    elseif state == BLOCKED then
        call('ZADD', BLOCK, 0, end_member(r.prefix, id))
        call('ZADD', OCC, 0, 'b' .. id)
    else
        if r.kind == OCCURRENCE then call('ZADD', OCC, 0, 'r' .. id) end
        pend(id, r)
    end
end

local function restore(at)
    local id, att = ARGV[at], ARGV[at + 4]
    if look(id) then return tonumber(ARGV[at + 1]) == REJECT and 'taken' or 'kept' end
    local r = read_record(ARGV[at + 3])
    r.prefix = make_prefix(string.byte(r.prefix), take_sequence())
    write_record(id, r)
    if att ~= '' then call('HSET', ATT, id, att) end
    place(id, r, tonumber(ARGV[at + 2]))
    return 'new'
end

if not is_known then birth() end
local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = restore(at)
end
return reply(results)
