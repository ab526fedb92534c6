-- AGENDA. Arguments: the start of the first step, the length of a step, both in ms, and their
-- number. The result is the numbers of timers as {index of a step, number, ...}. A lease is a due:
-- leased timers count when their leases end.

local from, step, steps = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local counts = {}

-- to_ms() rounds up: a score of less than 1 ms before a step counts, too
local function bound(index)
    return print_score(from + index * step - 1)
end

-- Halves the steps, as long as one half has timers.
local function count(first, last)
    local number = call('ZCOUNT', TIMELINE, '(' .. bound(first), bound(last + 1))
    if number == 0 then return end
    if first == last then
        counts[#counts + 1] = first
        counts[#counts + 1] = number
        return
    end
    local middle = math.floor((first + last) / 2)
    count(first, middle)
    count(middle + 1, last)
end

count(0, steps - 1)
return reply({counts})
