-- SCHEDULE on a server whose memory is full, with the items of schedule.lua: what adds nothing is
-- answered as usual. Each result is 'kept', 'taken', or 'oom': the timer would be added or changed.

local ARGS = 4

local function keep(at)
    local id, how = ARGV[at], ARGV[at + 1]
    local old, state = look(id)
    if not old then return 'oom' end
    return stay(id, old, state, how, due_of(how, tonumber(ARGV[at + 2]))) or 'oom'
end

local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = keep(at)
end
return reply(results)
