-- LIST. Arguments: score and member after which the page begins (score empty: at the beginning),
-- count, which (s: not due yet, r: due, empty: all), the first due and the due before which the
-- list ends (each empty: none), bytes of envelopes after which a page ends. The results are a list
-- of timers, each as of GET, and where the page has ended: {score, member}, or false after the last
-- one.

local SLICE, LOOKED_MAX = 100, 10000

local function is_before(a, b) -- by bytes: `<` follows the locale of the server
    for i = 1, math.min(#a, #b) do
        local x, y = string.byte(a, i), string.byte(b, i)
        if x ~= y then return x < y end
    end
    return #a < #b
end

-- Returns the rank of the first member after a place.
local function seek(score, member)
    local low = call('ZCOUNT', TIMELINE, '-inf', '(' .. score)
    local high = call('ZCOUNT', TIMELINE, '-inf', score)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if is_before(member, call('ZRANGE', TIMELINE, middle, middle)[1]) then
            high = middle
        else
            low = middle + 1
        end
    end
    return low
end

local count, which, bytes_max = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[9])
local from, to = tonumber(ARGV[7]), tonumber(ARGV[8])
local page, page_bytes, last, looked = {}, 0, false, 0

-- Returns where to begin: after the place of the caller and not before the first due.
local function first_rank()
    local rank = ARGV[3] == '' and 0 or seek(ARGV[3], ARGV[4])
    if which == 's' then
        rank = math.max(rank, call('ZCOUNT', TIMELINE, '-inf', now_score))
    end
    if not from then return rank end
    -- to_ms() rounds up: a score of less than 1 ms before it counts, too
    return math.max(rank, call('ZCOUNT', TIMELINE, '-inf', '(' .. print_score(from - 1)))
end

-- Looks at a member. Returns true if the list ends before it.
local function add(id, text)
    local score = tonumber(text)
    local due = to_ms(score)
    if (to and due >= to) or (which == 'r' and score > tonumber(now_score)) then return true end
    local envelope = (not from or due >= from) and call('HGET', PAYLOADS, id)
    if envelope then
        page[#page + 1] = {id, due, envelope}
        page_bytes = page_bytes + #envelope
    end
    last = {string.format('%.17g', score), id}
    return false
end

local rank = first_rank()
while true do
    local slice = call('ZRANGE', TIMELINE, rank, rank + SLICE - 1, 'WITHSCORES')
    for i = 1, #slice, 2 do
        if #page == count or page_bytes > bytes_max or looked == LOOKED_MAX then
            return reply({page, last})
        end
        if add(slice[i], slice[i + 1]) then return reply({page, false}) end
        looked = looked + 1
    end
    if #slice == 0 then return reply({page, false}) end
    rank = rank + SLICE
end
