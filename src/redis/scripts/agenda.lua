-- AGENDA. Arguments: the start of the first step, the length of a step and their number; whether
-- all are hours (1 or 0); the end of the period for leased timers, unless all are hours, and for
-- plans (each empty: none); how many plans to pass over.
--
-- The results are the numbers of timers, as {hour since 1970, number, ...} or as {index of a step,
-- number, ...}; those of leased timers by step, or 'full' if they are too many; and plans, each as
-- of GET, in pages of PLANS_MAX.

local LEASES_MAX, PLANS_MAX, FIELDS_MAX = 100000, 100, 5000
local from, step, steps = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- Adds up nothing: an hour is a field.
local function count_hours()
    local counts, first = {}, math.floor(from / HOUR_MS)
    local last = math.floor((from + step * steps) / HOUR_MS) - 1
    if last - first < FIELDS_MAX then
        local names = {}
        for hour = first, last do
            names[#names + 1] = print_number(hour)
        end
        for i, number in ipairs(call('HMGET', HOUR, unpack(names))) do
            if number then
                counts[#counts + 1] = first + i - 1
                counts[#counts + 1] = tonumber(number)
            end
        end
        return counts
    end
    local fields = call('HGETALL', HOUR)
    for i = 1, #fields, 2 do
        local hour = tonumber(fields[i])
        if hour and hour >= first and hour <= last then
            counts[#counts + 1] = hour
            counts[#counts + 1] = tonumber(fields[i + 1])
        end
    end
    return counts
end

-- Halves the steps, as long as one half has timers.
local function count_steps(counts, first, last)
    local number = call('ZCOUNT', PEND, print_number(from + first * step),
                        '(' .. print_number(from + (last + 1) * step))
    if number == 0 then return end
    if first == last then
        counts[#counts + 1] = first
        counts[#counts + 1] = number
        return
    end
    local middle = math.floor((first + last) / 2)
    count_steps(counts, first, middle)
    count_steps(counts, middle + 1, last)
end

-- Leased timers are in no sorted set by their due: all of them are looked at.
local function count_leases(to)
    if call('HLEN', TOK) > LEASES_MAX then return 'full' end
    local numbers, counts = {}, {}
    local all = call('HGETALL', TOK)
    for i = 1, #all, 2 do
        if all[i] ~= SENTINEL then
            local _, _, due = struct.unpack(TOK_HEAD, all[i + 1])
            if due >= from and due < to then
                local index = math.floor((due - from) / step)
                numbers[index] = (numbers[index] or 0) + 1
            end
        end
    end
    for index, number in pairs(numbers) do
        counts[#counts + 1] = index
        counts[#counts + 1] = number
    end
    return counts
end

local function get_plans(to, skip)
    local plans = {}
    local members = call('ZRANGEBYSCORE', PLAN, '-inf', '(' .. to, 'WITHSCORES', 'LIMIT', skip,
                         PLANS_MAX)
    for i = 1, #members, 2 do
        local id = string.sub(members[i], 9)
        plans[#plans + 1] = {id, SCHEDULED, tonumber(members[i + 1]), call('HGET', REC, id),
                             call('HGET', ATT, id), false}
    end
    return plans
end

if not is_known then return reply({{}, {}, {}}) end
if not is_swept then return again() end
local counts, leases, plans = {}, {}, {}
if ARGV[5] == '1' and steps > 0 then
    counts = count_hours()
elseif steps > 0 then
    count_steps(counts, 0, steps - 1)
end
if ARGV[6] ~= '' then leases = count_leases(tonumber(ARGV[6])) end
if ARGV[7] ~= '' then plans = get_plans(ARGV[7], ARGV[8]) end
return reply({counts, leases, plans})
