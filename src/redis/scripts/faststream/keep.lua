-- SCHEDULE on a server whose memory is full, with the items of schedule.lua: what adds nothing is
-- answered as usual. Each result is 'kept', 'taken', or 'oom': the timer would be added or changed.

local ARGS = 5

local results = {}
for at = 3, #ARGV, ARGS do
    results[#results + 1] = stay(ARGV[at], tonumber(ARGV[at + 1])) or 'oom'
end
return reply(results)
