-- CANCEL. Items of one: id. Each result is 1, or 0 if there is no such unfinished timer. A plan
-- ends with its occurrences.

local function cancel_timer(id, r, state)
    take_out(id, r, state)
    finish(id, r.prefix, CANCELLED, '')
end

-- Cancels the occurrences of a plan: the blocked ones first, so that none of them gets to run.
local function cancel_occurrences(plan)
    for _, which in ipairs({'b', 'r'}) do
        for _, id in ipairs(occurrences(plan, which)) do
            local r, state = look(id)
            if r and state < DONE then cancel_timer(id, r, state) end
        end
    end
end

local function cancel_plan(id, r)
    local _, a, p = find_plan(id)
    displace_plan(id, r)
    p.has_next = 0
    write_plan(a, p)
    finish(id, r.prefix, CANCELLED, '', a)
    cancel_occurrences(id)
end

local function cancel(id)
    local r, state = look(id)
    if not r or state >= DONE then return 0 end
    if r.kind == A_PLAN then
        cancel_plan(id, r)
    else
        cancel_timer(id, r, state)
    end
    return 1
end

local results = {}
for at = 2, #ARGV do
    results[#results + 1] = is_known and cancel(ARGV[at]) or 0
end
return reply(results)
