-- A plan rings. Items of seven: id and prefix of the plan, the next time that the caller has seen,
-- how many times were missed, the times to make (numbers with spaces between), the next time after
-- these (empty: none), whether more missed times are to be made. Each result is 1; or 0 if the plan
-- has another next time, because another node has made it ring.

local ARGS = 7
local expired -- occurrences of this ring that have expired already

-- Makes an occurrence, which may be blocked.
local function make(id, r, p, nominal, is_blocked)
    local name = id .. '@' .. print_number(nominal)
    local o = {prefix = make_prefix(string.byte(r.prefix), take_sequence()),
               due = nominal + p.place, created = now, expires = r.expires,
               expiry = r.expires > 0 and nominal + r.expires or 0, lease = r.lease,
               load = r.load, kind = OCCURRENCE, bytes = r.bytes}
    write_record(name, o)
    call('ZADD', OCC, 0, (is_blocked and 'b' or 'r') .. name)
    if is_blocked then
        call('ZADD', BLOCK, 0, end_member(o.prefix, name))
        return
    end
    pend(name, o)
    if is_expired(o) then expired[#expired + 1] = name end
end

-- Makes the occurrence of a time, or leaves it out. Returns whether it was made.
local function try_to_make(id, r, p, nominal)
    local runs, blocked = count_occurrences(id, 'r'), count_occurrences(id, 'b')
    local is_left_out = look(id .. '@' .. print_number(nominal)) or
        (p.overlap == SKIP and runs + blocked > 0) or
        (p.overlap == QUEUE and blocked >= QUEUE_MAX)
    if is_left_out then
        p.skipped = p.skipped + 1
        return false
    end
    make(id, r, p, nominal, p.overlap == QUEUE and runs + blocked > 0)
    p.made = p.made + 1
    return true
end

-- Sets what comes after the times that were made.
local function set_next(id, r, a, p, next, has_made)
    local is_used = p.count > 0 and p.made + p.skipped + p.missed >= p.count
    if p.mode == DELAY and has_made and not is_used then
        p.has_next = 0
        place_plan(id, r, a, p)
    elseif p.mode == DELAY and not has_made then
        go_on(id, r, a, p)
    elseif is_used or not next then
        end_plan(id, r, a, p)
    else
        p.has_next, p.next = 1, next
        place_plan(id, r, a, p)
    end
end

local function ring(at)
    local id = ARGV[at]
    local r, a, p = find_plan(id)
    if not r or r.prefix ~= ARGV[at + 1] then return 0 end
    if p.has_next == 0 or p.next ~= tonumber(ARGV[at + 2]) then return 0 end
    displace_plan(id, r)
    expired = {}
    local has_made = false
    p.missed = p.missed + tonumber(ARGV[at + 3])
    for time in string.gmatch(ARGV[at + 4], '%S+') do
        has_made = try_to_make(id, r, p, tonumber(time)) or has_made
    end
    p.catching = tonumber(ARGV[at + 6])
    set_next(id, r, a, p, tonumber(ARGV[at + 5]), has_made)
    for _, name in ipairs(expired) do
        look(name) -- ends it
    end
    return 1
end

local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = is_known and ring(at) or 0
end
return reply(results)
