/* SPDX-License-Identifier: MIT */

/*
 * A state machine over single bytes. A stack of bits says which levels are objects.
 */
#include "http/json_check.h"

#include <string.h>

enum state {
    VALUE,       /* before a value */
    FIRST_VALUE, /* after [: a value, or ] */
    FIRST_NAME,  /* after {: a name, or } */
    NAME,        /* after a comma in an object */
    COLON,
    AFTER, /* after a value */
    STRING,
    ESCAPE,
    HEX,
    HIGH,   /* after the first half of a pair: \ */
    HIGH_U, /* then u */
    LITERAL,
    MINUS,
    ZERO,
    INTEGER,
    POINT,
    FRACTION,
    EXPONENT,
    EXPONENT_SIGN,
    EXPONENT_DIGITS,
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_object(const struct bel_json_check *check)
{
    unsigned level = check->depth - 1U;
    return check->depth > 0 && (check->objects[level / 8] >> level % 8 & 1) != 0;
}

static bool open_level(struct bel_json_check *check, bool is_object)
{
    unsigned level = check->depth;
    if (level == BEL_JSON_DEPTH_MAX) return false;
    uint8_t bit = (uint8_t)(1U << level % 8);
    check->objects[level / 8] =
        (uint8_t)(is_object ? check->objects[level / 8] | bit : check->objects[level / 8] & ~bit);
    check->depth++;
    check->state = is_object ? FIRST_NAME : FIRST_VALUE;
    return true;
}

static bool close_level(struct bel_json_check *check, char c)
{
    if (check->depth == 0 || in_object(check) != (c == '}')) return false;
    check->depth--;
    check->state = AFTER;
    return true;
}

static bool begin_literal(struct bel_json_check *check, const char *rest)
{
    check->literal = rest;
    check->state = LITERAL;
    return true;
}

static bool begin_string(struct bel_json_check *check, enum state after)
{
    check->after = (uint8_t)after;
    check->state = STRING;
    return true;
}

static bool begin_value(struct bel_json_check *check, char c)
{
    switch (c) {
    case '{':
        return open_level(check, true);
    case '[':
        return open_level(check, false);
    case '"':
        return begin_string(check, AFTER);
    case 't':
        return begin_literal(check, "rue");
    case 'f':
        return begin_literal(check, "alse");
    case 'n':
        return begin_literal(check, "ull");
    case '-':
        check->state = MINUS;
        return true;
    default:
        check->state = c == '0' ? ZERO : INTEGER;
        return is_digit(c);
    }
}

/* After a value: a comma, or the end of a level. */
static bool take_after(struct bel_json_check *check, char c)
{
    if (is_space(c)) return true;
    if (c == ',' && check->depth > 0) {
        check->state = in_object(check) ? NAME : VALUE;
        return true;
    }
    return (c == '}' || c == ']') && close_level(check, c);
}

/* --- strings --- */

static bool take_escape(struct bel_json_check *check, char c)
{
    check->digits = 0;
    check->code = 0;
    check->state = c == 'u' ? HEX : STRING;
    return c != 0 && strchr("\"\\/bfnrtu", c) != NULL;
}

/* Takes a hexadecimal digit after \u. A character beyond 16 bits has two escapes of four digits:
 * the first must be a high surrogate, and its low surrogate is read as digits 5 to 8. */
static bool take_hex(struct bel_json_check *check, char c)
{
    char letter = (char)(c | 0x20);
    int value = is_digit(c) ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
    if (value < 0) return false;
    check->code = (uint16_t)(check->code << 4 | value);
    check->digits++;
    if (check->digits % 4 != 0) return true;
    bool is_high = check->code >= 0xd800 && check->code < 0xdc00;
    bool is_low = check->code >= 0xdc00 && check->code < 0xe000;
    if (check->digits == 8) {
        check->state = STRING;
        return is_low;
    }
    check->state = is_high ? HIGH : STRING;
    return !is_low;
}

/* --- numbers --- */

static bool is_number_over(enum state state)
{
    return state == ZERO || state == INTEGER || state == FRACTION || state == EXPONENT_DIGITS;
}

/* Returns the state after a byte of a number; AFTER: the byte is not part of it. */
static enum state next_of_number(enum state state, char c)
{
    bool may_have_point = state == ZERO || state == INTEGER;
    bool may_have_exponent = may_have_point || state == FRACTION;
    if (c == '.' && may_have_point) return POINT;
    if ((c == 'e' || c == 'E') && may_have_exponent) return EXPONENT;
    if ((c == '+' || c == '-') && state == EXPONENT) return EXPONENT_SIGN;
    if (!is_digit(c)) return AFTER;
    switch (state) {
    case MINUS:
        return c == '0' ? ZERO : INTEGER;
    case INTEGER:
        return INTEGER;
    case POINT:
    case FRACTION:
        return FRACTION;
    case EXPONENT:
    case EXPONENT_SIGN:
    case EXPONENT_DIGITS:
        return EXPONENT_DIGITS;
    default:
        return AFTER;
    }
}

static bool take_number(struct bel_json_check *check, char c)
{
    enum state state = check->state, next = next_of_number(state, c);
    check->state = (uint8_t)next;
    if (next != AFTER) return true;
    return is_number_over(state) && take_after(check, c);
}

/* --- the machine --- */

static bool take_byte(struct bel_json_check *check, char c)
{
    switch (check->state) {
    case VALUE:
        return is_space(c) || begin_value(check, c);
    case FIRST_VALUE:
        if (c == ']') return close_level(check, c);
        return is_space(c) || begin_value(check, c);
    case FIRST_NAME:
        if (c == '}') return close_level(check, c);
        return is_space(c) || (c == '"' && begin_string(check, COLON));
    case NAME:
        return is_space(c) || (c == '"' && begin_string(check, COLON));
    case COLON:
        if (c == ':') check->state = VALUE;
        return is_space(c) || c == ':';
    case AFTER:
        return take_after(check, c);
    case STRING:
        if (c == '"') check->state = check->after;
        if (c == '\\') check->state = ESCAPE;
        return (unsigned char)c >= ' ';
    case ESCAPE:
        return take_escape(check, c);
    case HEX:
        return take_hex(check, c);
    case HIGH:
        check->state = HIGH_U;
        return c == '\\';
    case HIGH_U:
        check->state = HEX;
        check->code = 0;
        return c == 'u';
    case LITERAL:
        if (c != *check->literal) return false;
        if (*++check->literal == 0) check->state = AFTER;
        return true;
    default:
        return take_number(check, c);
    }
}

bool bel__json_check_take(struct bel_json_check *check, struct bel_view part)
{
    const char *text = part.data;
    for (size_t i = 0; i < part.bytes; i++) {
        if (!take_byte(check, text[i])) return false;
    }
    return true;
}

bool bel__json_check_end(const struct bel_json_check *check)
{
    return check->depth == 0 && (check->state == AFTER || is_number_over(check->state));
}
