-- LIST. Arguments: section, score and member after which the page begins (member empty: at the
-- score), count, state (-1: any), the first due and the due before which the list ends (each empty:
-- none), bytes of bodies after which a page ends. The results are a list of timers, each as of GET,
-- their places: {section, score, member, ...}, and whether there are more (1 or 0).
--
-- Sections come one after the other: 0 timers and plans with a due, 1 those without one, 4 to 8 the
-- ends by state.
-- Leased timers are ordered by their due, which no sorted set has: all leases of the topic are read
-- and sorted.

local function is_before(a, b) -- by bytes: `<` follows the locale of the server
    for i = 1, math.min(#a, #b) do
        local x, y = string.byte(a, i), string.byte(b, i)
        if x ~= y then return x < y end
    end
    return #a < #b
end

local function is_after(score, member, at)
    if score ~= at.score then return score > at.score end
    return at.member ~= '' and is_before(at.member, member) or at.member == ''
end

-- Returns the rank of the first entry after a place.
local function seek(key, at)
    local text = print_number(at.score)
    local low = call('ZCOUNT', key, '-inf', '(' .. text)
    if at.member == '' then return low end
    local high = call('ZCOUNT', key, '-inf', text)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if is_before(at.member, call('ZRANGE', key, middle, middle)[1]) then
            high = middle
        else
            low = middle + 1
        end
    end
    return low
end

-- Returns a function that returns the next member and score of a sorted set after a place.
local function walk(key, at, slice)
    local rank, rows, i = seek(key, at), {}, 1
    return function()
        if i > #rows then
            rows, i = call('ZRANGE', key, rank, rank + slice - 1, 'WITHSCORES'), 1
            rank = rank + slice
        end
        local member, score = rows[i], tonumber(rows[i + 1])
        i = i + 2
        if member and member ~= SENTINEL then return member, score end
    end
end

-- The same of the leases, by due.
local function walk_leases(at)
    local rows, i = {}, 0
    local all = call('HGETALL', TOK)
    for k = 1, #all, 2 do
        if all[k] ~= SENTINEL then
            local _, _, due = struct.unpack(TOK_HEAD, all[k + 1])
            if is_after(due, all[k], at) then rows[#rows + 1] = {all[k], due} end
        end
    end
    table.sort(rows, function(a, b)
        if a[2] ~= b[2] then return a[2] < b[2] end
        return is_before(a[1], b[1])
    end)
    return function()
        i = i + 1
        if rows[i] then return rows[i][1], rows[i][2] end
    end
end

local function walk_nothing() end

-- Merges two walks.
local function merge(one, two)
    local a, a_score = one()
    local b, b_score = two()
    return function()
        local member, score
        if a and (not b or a_score < b_score or (a_score == b_score and is_before(a, b))) then
            member, score = a, a_score
            a, a_score = one()
        else
            member, score = b, b_score
            b, b_score = two()
        end
        return member, score
    end
end

local count, state, bytes_max = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[9])
local from, to = tonumber(ARGV[7]), tonumber(ARGV[8])
local page, page_bytes, places = {}, 0, {}

local function state_of(section, member, score)
    if section == 1 then
        return find_plan(string.sub(member, 9)) and SCHEDULED or BLOCKED
    end
    if section >= DONE then return section end
    if call('ZSCORE', LEASE, member) then return LEASED end
    if call('ZSCORE', PLAN, member) then return SCHEDULED end
    return score <= now and READY or SCHEDULED
end

local function add(section, member, score)
    local id = string.sub(member, 9)
    local its_state = state_of(section, member, score)
    if state ~= -1 and state ~= its_state then return end
    local record, att = call('HGET', REC, id), call('HGET', ATT, id)
    local tok = its_state == LEASED and call('HGET', TOK, member)
    local shown = its_state == LEASED and tonumber(call('ZSCORE', LEASE, member)) or score
    page[#page + 1] = {id, its_state, shown, record, att, tok}
    page_bytes = page_bytes + #record - HEAD_BYTES + (att and #att or 0)
    places[#places + 1] = section
    places[#places + 1] = print_number(score)
    places[#places + 1] = member
end

local function walk_section(section, at)
    if section == 0 then
        local needs_pend = state == -1 or state <= READY
        local needs_lease = state == -1 or state == LEASED
        if state == SCHEDULED and is_after(now, '', at) then at = {score = now, member = ''} end
        local timers = merge(needs_pend and walk(PEND, at, count + 1) or walk_nothing,
                             needs_lease and walk_leases(at) or walk_nothing)
        local needs_plans = state == -1 or state == SCHEDULED
        return merge(timers, needs_plans and walk(PLAN, at, count + 1) or walk_nothing)
    end
    local key = section == 1 and BLOCK or ENDS[section]
    local needs_key = section == 1 and (state == BLOCKED or state == SCHEDULED) or state == section
    if state ~= -1 and not needs_key then return walk_nothing end
    return walk(key, at, count + 1)
end

-- Returns whether the page is full.
local function list_section(section, at)
    for member, score in walk_section(section, at) do
        if section == 0 and to and score >= to then return false end
        if state == READY and section == 0 and score > now then return false end
        if #page == count or page_bytes > bytes_max then return true end
        add(section, member, score)
    end
    return false
end

if not is_known then return reply({{}, {}, 0}) end
if not is_swept then return again() end
local first = {score = tonumber(ARGV[3]), member = ARGV[4]}
if from and tonumber(ARGV[2]) == 0 and first.score < from then
    first = {score = from, member = ''}
end
for _, section in ipairs({0, 1, 4, 5, 6, 7, 8}) do
    local is_done = section > 0 and (from or to)
    if section >= tonumber(ARGV[2]) and not is_done then
        local at = section == tonumber(ARGV[2]) and first or {score = -2 ^ 53, member = ''}
        if list_section(section, at) then return reply({page, places, 1}) end
    end
end
return reply({page, places, 0})
