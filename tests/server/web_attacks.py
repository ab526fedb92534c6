#!/usr/bin/env python3
"""HTTP attacks: a table of requests that are wrong on purpose.

A row has the bytes sent on a connection of its own and the expected result: the statuses of all
responses, and whether the server closes the connection after them. `made` is the number of timers
that the row may create in the topic `good`. The topic `bad`, which smuggled requests use, must stay
empty. After each row the server must still answer, on both of its ports.
"""
import json
import re
import socket

from rig import DEADLINE, Server, main

HOST = "Host: localhost\r\n"
BODY = '{"payload":0}'  # 13 bytes
LIMIT = 1000  # bytes of a payload; so 258000 of a body
MANY = 40     # connections at once


class Row:
    def __init__(self, name, sent, *statuses, closes=True, made=0):
        self.name, self.sent, self.statuses = name, as_bytes(sent), list(statuses)
        self.closes, self.made = closes, made


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def post(*headers, body=BODY, topic="good", host=HOST):
    """Returns a POST with exactly the given headers."""
    lines = "".join(header + "\r\n" for header in headers)
    return f"POST /v1/topics/{topic}/timers HTTP/1.1\r\n{host}{lines}\r\n{body}"


def sized(body, topic="good", method="POST", path=None, headers=""):
    """Returns a request that is valid HTTP."""
    data = as_bytes(body)
    path = path or f"/v1/topics/{topic}/timers"
    return (f"{method} {path} HTTP/1.1\r\n{HOST}{headers}Content-Length: {len(data)}\r\n\r\n"
            .encode("latin-1") + data)


def get(path, headers="", method="GET", version="HTTP/1.1"):
    return f"{method} {path} {version}\r\n{HOST}{headers}\r\n"


BAD = sized(BODY, topic="bad").decode()
CHUNKED = "Transfer-Encoding: chunked"


def chunk(text):
    return f"{len(text):x}\r\n{text}\r\n"


LAST = "0\r\n\r\n"


def length(value, body=BODY):
    return post(f"Content-Length: {value}", body=body)


# Request smuggling: if two readers disagree on where a request ends, one can be hidden in another.
SMUGGLING = [
    Row("length_and_chunks", post("Content-Length: 5", CHUNKED, body=LAST + BAD), 400),
    Row("chunks_and_length", post(CHUNKED, "Content-Length: 5", body=LAST + BAD), 400),
    Row("two_lengths", post("Content-Length: 0", f"Content-Length: {len(BAD)}", body=BAD), 400),
    Row("two_lengths_the_same", post("Content-Length: 13", "Content-Length: 13"), 400),
    Row("a_list_of_lengths", length("13, 13"), 400),
    Row("a_length_with_a_plus", length("+13"), 400),
    Row("a_length_with_a_minus", length("-13"), 400),
    Row("a_length_in_hexadecimal", length("0xd"), 400),
    Row("a_length_with_a_space", length("1 3"), 400),
    Row("a_length_with_more_behind", length("13;"), 400),
    Row("a_length_with_a_point", length("13.0"), 400),
    Row("no_length", length(""), 400),
    Row("a_length_beyond_64_bits", length("18446744073709551629"), 413),
    Row("a_length_of_all_64_bits", length("18446744073709551615"), 413),
    Row("a_length_of_63_bits", length("9223372036854775807"), 413),
    Row("a_length_with_spaces_before", length("  13"), 201, closes=False, made=1),
    Row("a_length_with_spaces_behind", length("13 \t"), 201, closes=False, made=1),
    Row("a_length_with_zeros", length("0013"), 201, closes=False, made=1),
    Row("a_space_before_the_colon", post("Content-Length : 13"), 400),
    Row("a_space_before_the_name", f"POST /v1/topics/good/timers HTTP/1.1\r\n Content-Length: 13\r\n"
        f"{HOST}\r\n{BODY}", 400),
    Row("a_coding_and_a_space_before_the_colon",
        post("Transfer-Encoding : chunked", "Content-Length: 13", body=LAST + BAD), 400),
    Row("chunked_then_identity", post("Transfer-Encoding: chunked, identity", body=LAST + BAD), 400),
    Row("identity", post("Transfer-Encoding: identity", body=BODY), 400),
    Row("gzip_then_chunked", post("Transfer-Encoding: gzip, chunked", body=LAST + BAD), 400),
    Row("two_codings", post(CHUNKED, "Transfer-Encoding: identity", body=LAST + BAD), 400),
    Row("a_coding_that_looks_like_chunked", post("Transfer-Encoding: xchunked", body=LAST + BAD), 400),
    Row("chunked_in_quotes", post('Transfer-Encoding: "chunked"', body=LAST + BAD), 400),
    Row("no_coding", post("Transfer-Encoding: ", body=LAST + BAD), 400),
    Row("chunked_with_a_control_character", post("Transfer-Encoding: \x0bchunked", body=LAST + BAD), 400),
    Row("a_folded_coding", post("Transfer-Encoding:\r\n chunked", "Content-Length: 13"), 400),
    Row("a_coding_folded_in_the_middle", post("Transfer-Encoding: chun\r\n\tked", body=LAST + BAD), 400),
    Row("a_folded_length", post("Content-Length: 1\r\n 3"), 400),
    Row("a_length_in_a_fold", post("X-A: b\r\n Content-Length: 13", body=BAD), 400),
    Row("a_length_behind_a_bare_return", post("X-A: b\rContent-Length: 13"), 400),
    Row("a_coding_behind_a_bare_return", post(f"X-A: b\r{CHUNKED}", "Content-Length: 13"), 400),
    Row("a_body_of_a_get", sized(BAD, method="GET", path="/v1/topics"), 400, closes=False),
    Row("a_body_of_a_head", sized(BAD, method="HEAD", path="/livez"), 200, closes=False),
    Row("a_body_of_what_is_refused", sized(BAD, method="PATCH", path="/nowhere"), 404),
    Row("a_body_of_a_delete_that_is_refused", sized(BAD, method="DELETE", path="/livez"), 405),
    Row("a_body_in_chunks_of_what_is_refused",
        f"PATCH /nowhere HTTP/1.1\r\n{HOST}{CHUNKED}\r\n\r\n{chunk(BAD)}{LAST}", 404),
    Row("a_body_of_a_foreign_origin", sized(BODY, headers="Origin: http://evil.example\r\n"), 403),
    Row("a_body_for_a_foreign_host", post("Content-Length: 13", host="Host: evil.example\r\n"), 403),
    Row("two_keys_for_a_retry",
        sized(BODY, headers="Idempotency-Key: a\r\nidempotency-key: b\r\n"), 400),
    Row("more_than_its_length", sized(BODY) + b"GET /livez HTTP/1.1\r\n" + as_bytes(HOST) + b"\r\n",
        201, 200, closes=False, made=1),
    Row("empty_lines_before", "\r\n\r\n" + get("/livez"), 200, closes=False),
]

CHUNKS = [
    Row("right_chunks", post(CHUNKED, body=chunk(BODY[:5]) + chunk(BODY[5:]) + LAST), 201,
        closes=False, made=1),
    Row("a_chunk_with_an_extension", post(CHUNKED, body=f"d;a=b\r\n{BODY}\r\n{LAST}"), 201,
        closes=False, made=1),
    Row("chunks_and_a_trailer", post(CHUNKED, body=chunk(BODY) + "0\r\nX-A: b\r\n\r\n"), 201,
        closes=False, made=1),
    Row("a_trailer_that_says_a_length",
        post(CHUNKED, body=chunk(BODY) + f"0\r\nContent-Length: {len(BAD)}\r\n\r\n") + get("/livez"),
        201, 200, closes=False, made=1),
    Row("a_chunk_of_no_number", post(CHUNKED, body=f"zz\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_chunk_with_a_minus", post(CHUNKED, body=f"-d\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_chunk_with_a_plus", post(CHUNKED, body=f"+d\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_chunk_with_0x", post(CHUNKED, body=f"0xd\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_chunk_with_a_space", post(CHUNKED, body=f"d \r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_chunk_with_a_bare_line_feed", post(CHUNKED, body=f"d\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_chunk_that_ends_in_a_bare_line_feed", post(CHUNKED, body=f"d\r\n{BODY}\n{LAST}" + BAD), 400),
    Row("a_nul_in_an_extension", post(CHUNKED, body=f"d;a\0\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_long_extension", post(CHUNKED, body=f"d;{'a' * 300}\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("a_nul_in_a_trailer", post(CHUNKED, body=chunk(BODY) + "0\r\nX: \0\r\n\r\n" + BAD), 400),
    Row("trailers_without_an_end", post(CHUNKED, body=chunk(BODY) + "0\r\n" + "X: y\r\n" * 3000), 431),
    Row("a_chunk_of_leading_zeros", post(CHUNKED, body="0" * 15 + chunk(BODY) + LAST), 201,
        closes=False, made=1),
    Row("a_chunk_beyond_64_bits", post(CHUNKED, body=f"1000000000000000d\r\n{BODY}\r\n{LAST}" + BAD),
        413),
    Row("a_chunk_that_is_longer_than_it_says", post(CHUNKED, body=f"5\r\n{BODY}\r\n{LAST}" + BAD), 400),
    Row("an_empty_chunk_size", post(CHUNKED, body=f"\r\n{BODY}\r\n{LAST}" + BAD), 400),
]

# Invalid HTTP.
SYNTAX = [
    Row("bare_line_feeds", get("/livez").replace("\r\n", "\n"), 400),
    Row("a_bare_line_feed_in_a_header", get("/livez", "X-A: b\nX-B: c\r\n"), 400),
    Row("a_bare_return_before_the_end", get("/livez", "X-A: b\r\r\n"), 400),
    Row("a_nul_in_a_header", get("/livez", "X-A: b\0c\r\n"), 400),
    Row("a_nul_in_a_length", length("13\0001"), 400),
    Row("a_nul_and_a_list_in_a_length", length("13\0, 3"), 400),
    Row("a_nul_in_the_host", f"GET /livez HTTP/1.1\r\nHost: localhost\0.evil.com\r\n\r\n", 400),
    Row("a_nul_in_the_path", get("/livez\0"), 400),
    Row("a_nul_in_the_method", get("/livez", method="GET\0"), 400),
    Row("a_nul_before_the_request", "\0" + get("/livez"), 400),
    Row("a_header_without_a_name", get("/livez", ": b\r\n"), 400),
    Row("a_delete_in_a_header", get("/livez", "X-A: b\x7fc\r\n"), 400),
    Row("a_fold", get("/livez", "X-A: b\r\n c\r\n"), 400),
    Row("a_fold_of_the_request_line", f"GET /livez\r\n HTTP/1.1\r\n{HOST}\r\n", 400),
    Row("two_spaces_in_the_request_line", f"GET  /livez HTTP/1.1\r\n{HOST}\r\n", 400),
    Row("a_space_behind_the_version", get("/livez", version="HTTP/1.1 "), 400),
    Row("a_tab_in_the_request_line", f"GET\t/livez HTTP/1.1\r\n{HOST}\r\n", 400),
    Row("a_space_before_the_method", " " + get("/livez"), 400),
    Row("a_version_in_small_letters", get("/livez", version="http/1.1"), 400),
    Row("a_version_of_three_digits", get("/livez", version="HTTP/1.10"), 400),
    Row("chunks_in_1_0", post(CHUNKED, body=LAST).replace("HTTP/1.1", "HTTP/1.0"), 400),
    Row("kept_alive_in_1_0", get("/livez", "Connection: keep-alive\r\n", version="HTTP/1.0"), 200,
        closes=False),
    Row("close_in_a_list", get("/livez", "Connection: x , CLOSE,\r\n"), 200),
    Row("a_minor_version_to_come", get("/livez", version="HTTP/1.2"), 200, closes=False),
    Row("a_nul_in_the_name_of_a_header", get("/livez", "X\0A: b\r\n"), 400),
    Row("a_control_character_in_a_header", get("/livez", "X-A: b\x01c\r\n"), 400),
    Row("a_header_without_a_colon", get("/livez", "nonsense\r\n"), 400),
    Row("no_version", f"GET /livez\r\n{HOST}\r\n", 400),
    Row("a_version_to_come", get("/livez", version="HTTP/9.9"), 505),
    Row("a_version_of_nothing", get("/livez", version="HTTQ/1.1"), 400),
    Row("the_preface_of_http_2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    Row("a_handshake_of_tls", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(32) + b"\r\n\r\n", 400),
    Row("a_handshake_of_tls_in_part", b"\x16\x03\x01", 400),
    Row("resp", "*1\r\n$4\r\nPING\r\n\r\n", 400),
    Row("resp_in_part", "*1\r\n", 400),
    Row("no_host", "GET /livez HTTP/1.1\r\n\r\n", 400),
    Row("no_host_in_1_0", "GET /livez HTTP/1.0\r\n\r\n", 200),
    Row("an_origin_without_a_host", "GET /v1/topics HTTP/1.0\r\nOrigin: http://localhost\r\n\r\n", 403),
    Row("a_host_in_1_0", get("/livez", version="HTTP/1.0"), 200),
    Row("two_hosts", get("/livez", "Host: evil.example\r\n"), 400),
    Row("an_empty_host", "GET /livez HTTP/1.1\r\nHost: \r\n\r\n", 403, closes=False),
    Row("a_foreign_host", "GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, closes=False),
    Row("a_host_with_a_user", "GET /livez HTTP/1.1\r\nHost: localhost@evil\r\n\r\n", 403, closes=False),
    Row("a_foreign_origin", get("/v1/topics", "Origin: http://evil.example\r\n"), 403, closes=False),
    Row("two_origins", get("/v1/topics", "Origin: http://localhost\r\n" * 2), 400),
    Row("an_origin_of_nothing", get("/v1/topics", "Origin: null\r\n"), 403, closes=False),
    Row("an_expectation", get("/v1/topics", "Expect: wonders\r\n"), 400),
    Row("it_asks_before_it_sends", post("Content-Length: 13", "Expect: 100-continue"), 100, 201,
        closes=False, made=1),
    Row("it_asks_before_it_sends_too_much",
        post("Content-Length: 999999999", "Expect: 100-continue", body=""), 413),
    Row("an_upgrade", get("/livez", "Connection: Upgrade\r\nUpgrade: h2c\r\n"), 200, closes=False),
]

PATHS = [
    Row("a_target_of_a_query", get("?limit=1"), 400),
    Row("a_uri_with_a_host", get("http://localhost/livez"), 200, closes=False),
    Row("a_uri_with_a_port", get("HTTP://127.0.0.1:80/v1/topics?"), 200, closes=False),
    Row("a_uri_with_a_foreign_host", get("http://evil.example/livez"), 403, closes=False),
    Row("a_uri_instead_of_a_foreign_host",
        "GET http://localhost/livez HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200, closes=False),
    Row("a_uri_of_the_origin", get("http://[::1]:7/livez", "Origin: http://[::1]:7\r\n"), 200,
        closes=False),
    Row("a_uri_of_another_origin", get("http://[::1]:7/livez", "Origin: http://localhost\r\n"), 403,
        closes=False),
    Row("a_uri_without_a_path", get("http://localhost"), 404, closes=False),
    Row("a_uri_without_a_host", get("http:///livez"), 400),
    Row("a_uri_with_a_user", get("http://localhost@evil.example/livez"), 400),
    Row("a_uri_without_a_host_line", "GET http://localhost/livez HTTP/1.1\r\n\r\n", 400),
    Row("a_uri_of_another_scheme", get("ftp://localhost/livez"), 404, closes=False),
    Row("a_star", get("*", method="OPTIONS"), 404, closes=False),
    Row("an_authority", get("localhost:80", method="CONNECT"), 404, closes=False),
    Row("out_of_the_folder", get("/../../etc/passwd"), 404, closes=False),
    Row("out_of_the_folder_encoded", get("/v1/topics/..%2F..%2Fetc%2Fpasswd"), 404, closes=False),
    Row("out_of_the_topic", sized(BODY, path="/v1/topics/bad/../good/timers"), 404),
    Row("double_slashes", get("//v1//topics"), 404, closes=False),
    Row("a_slash_behind", get("/v1/topics/"), 404, closes=False),
    Row("an_encoded_slash_between", get("/v1%2Ftopics"), 404, closes=False),
    Row("a_topic_with_a_nul", sized(BODY, path="/v1/topics/bad%00/timers"), 400, closes=False),
    Row("an_id_with_a_nul", sized(BODY, path="/v1/topics/good/timers/a%00b", method="PUT"),
        400, closes=False),
    Row("an_id_with_a_line_end", sized(BODY, path="/v1/topics/good/timers/a%0D%0Ab", method="PUT"),
        400, closes=False),
    Row("an_id_with_a_slash", sized(BODY, path="/v1/topics/good/timers/a%2Fb", method="PUT"), 200,
        closes=False, made=1),
    Row("an_id_that_is_encoded_twice", sized(BODY, path="/v1/topics/good/timers/a%252Fb", method="PUT"),
        400, closes=False),
    Row("half_an_encoding", sized(BODY, path="/v1/topics/good/timers/a%2", method="PUT"), 400,
        closes=False),
    Row("an_id_that_is_no_utf_8", sized(BODY, path="/v1/topics/good/timers/%ff%fe", method="PUT"), 400,
        closes=False),
    Row("raw_bytes", sized(BODY, path="/v1/topics/good/timers/\xff", method="PUT"), 400, closes=False),
    Row("an_id_of_129_bytes", sized(BODY, path="/v1/topics/good/timers/" + "a" * 129, method="PUT"), 400,
        closes=False),
    Row("a_topic_of_201_bytes", sized(BODY, topic="a" * 201), 400, closes=False),
    Row("a_topic_that_is_an_option", sized("{}", path="/v1/topics/COUNT/claim"), 400, closes=False),
    Row("a_token_that_is_an_option", sized('{"result":"x"}', path="/v1/leases/RESULT/ack"), 409,
        closes=False),
    Row("a_query_where_there_is_none", sized(BODY, path="/v1/topics/good/timers?in=1h"), 400,
        closes=False),
    Row("a_query_with_a_name_twice", get("/v1/topics/good/timers?limit=1&limit=2"), 400, closes=False),
    Row("a_query_with_a_nul", get("/v1/topics/good/timers?limit=1%00"), 400, closes=False),
    Row("a_query_of_nothing", get("/v1/topics/good/timers?limit"), 400, closes=False),
    Row("a_query_of_100_pairs", get("/v1/topics/good/timers?" + "&" * 99 + "limit=1"), 200,
        closes=False),
    Row("a_query_of_400_pairs",
        get("/v1/topics/good/timers?" + "&".join(f"a{i}=b" for i in range(400))), 400, closes=False),
    Row("a_query_with_half_an_encoding", get("/v1/topics/good/timers?limit=%1"), 400, closes=False),
    Row("a_query_of_300_pairs", get("/v1/topics/good/timers?" + "a&" * 300), 400, closes=False),
]

METHODS = [
    Row("head", get("/v1/topics", method="HEAD"), 200, closes=False),
    Row("head_of_nowhere", get("/nowhere", method="HEAD"), 404, closes=False),
    Row("head_of_a_post", get("/v1/topics/good/claim", method="HEAD"), 405, closes=False),
    Row("options", get("/v1/topics", method="OPTIONS"), 405, closes=False),
    Row("trace", get("/v1/topics", method="TRACE"), 405, closes=False),
    Row("unknown", get("/v1/topics", method="FROBNICATE"), 405, closes=False),
    Row("small_letters", get("/v1/topics", method="get"), 405, closes=False),
    Row("another_method_in_a_header",
        get("/v1/topics/good", "X-HTTP-Method-Override: PATCH\r\n"), 404, closes=False),
    Row("a_long_method", get("/v1/topics", method="G" * 2000), 405, closes=False),
]

DEEP = "[" * 100000
BODIES = [
    Row("a_nul_behind_a_number", sized('{"payload":5\0}'), 400, closes=False),
    Row("a_nul_behind_the_object", sized('{"payload":5}\0'), 400, closes=False),
    Row("no_utf_8", sized('{"payload":"\xff"}'), 400, closes=False),
    Row("half_a_surrogate", sized('{"payload":"\\ud800"}'), 400, closes=False),
    Row("utf_16", sized(BODY.encode("utf-16")), 400, closes=False),
    Row("a_byte_order_mark", sized(b"\xef\xbb\xbf" + BODY.encode()), 400, closes=False),
    Row("deep_arrays", sized(DEEP), 400, closes=False),
    Row("deep_objects", sized('{"payload":' * 20000), 400, closes=False),
    Row("a_deep_payload", sized('{"payload":' + "[" * 3000 + "]" * 3000 + "}"), 400, closes=False),
    Row("a_name_twice", sized('{"payload":0,"in":"1h","in":"2h"}'), 400, closes=False),
    Row("a_name_twice_inside", sized('{"in":"1h","payload":{"a":1,"a":2}}'), 400, closes=False),
    Row("a_name_with_a_nul", sized('{"payload":0,"in":"1h","in\\u0000":"2h"}'), 400, closes=False),
    Row("an_unknown_name", sized('{"payload":0,"in":"1h","on":"2h"}'), 400, closes=False),
    Row("a_name_in_large_letters", sized('{"payload":0,"IN":"1h"}'), 400, closes=False),
    Row("a_payload_twice", sized('{"payload":"a","payload_base64":"QQ=="}'), 400, closes=False),
    Row("another_topic", sized('{"payload":0,"topic":"bad"}'), 400, closes=False),
    Row("an_option_as_a_value", sized('{"payload":0,"in":"1h","id":"a ID b"}'), 400, closes=False),
    Row("a_number_beyond_64_bits", sized('{"payload":0,"in":99999999999999999999}'), 400, closes=False),
    Row("a_number_beyond_all", sized('{"payload":1e999}'), 400, closes=False),
    Row("a_negative_number", sized('{"payload":0,"in":-1}'), 400, closes=False),
    Row("a_number_with_a_point", sized('{"payload":0,"in":1.5}'), 400, closes=False),
    Row("a_priority_beyond", sized('{"payload":0,"priority":256}'), 400, closes=False),
    Row("a_time_beyond", sized('{"payload":0,"at":9223372036854775807}'), 400, closes=False),
    Row("a_delay_beyond", sized('{"payload":0,"in":9223372036854775807}'), 400, closes=False),
    Row("no_number", sized('{"payload":NaN}'), 400, closes=False),
    Row("more_behind_the_object", sized(BODY + "{}"), 400, closes=False),
    Row("a_comment", sized("/**/" + BODY), 400, closes=False),
    Row("a_list", sized(f"[{BODY}]"), 400, closes=False),
    Row("a_header_of_lists", sized('{"payload":0,"headers":{"a":[["b"]]}}'), 400, closes=False),
    Row("a_header_in_a_header", sized('{"payload":0,"headers":{"a\\r\\nb":"c\\r\\nd"}}'), 201, closes=False,
        made=1),
    Row("one_header_too_many",
        sized(json.dumps({"payload": 0, "headers": {str(i): "x" for i in range(101)}})), 400, closes=False),
    Row("no_base64", sized('{"payload_base64":"Q!=="}'), 400, closes=False),
    Row("a_form", sized("in=1h", headers="Content-Type: application/x-www-form-urlencoded\r\n"), 400,
        closes=False),
    Row("a_form_in_parts", sized('--x\r\nContent-Disposition: form-data; name="in"\r\n\r\n1h\r\n--x--',
                                 headers="Content-Type: multipart/form-data; boundary=x\r\n"), 400,
        closes=False),
    Row("json_that_is_called_text", sized(BODY, headers="Content-Type: text/plain\r\n"), 201,
        closes=False, made=1),
    Row("squeezed", sized(b"\x1f\x8b\x08\0\0\0\0\0", headers="Content-Encoding: gzip\r\n"), 415),
    Row("not_squeezed", sized(BODY, headers="Content-Encoding: Identity\r\n"), 201, closes=False,
        made=1),
    Row("no_payload", sized('{"in":"1h"}'), 400, closes=False),
    Row("no_body", sized(""), 400, closes=False),
    Row("two_types", sized(BODY, headers="Content-Type: application/json\r\n" * 2), 400),
]

SIZES = [
    Row("a_long_path", get("/" + "a" * 8000), 404, closes=False),
    Row("a_path_without_an_end", get("/" + "a" * 100000), 414),
    Row("a_long_header", get("/livez", "X-A: " + "b" * 8000 + "\r\n"), 200, closes=False),
    Row("a_header_without_an_end", get("/livez", "X-A: " + "b" * 100000 + "\r\n"), 431),
    Row("many_headers", get("/livez", "".join(f"X-{i}: b\r\n" for i in range(100))), 200, closes=False),
    Row("headers_without_an_end", get("/livez", "".join(f"X-{i}: b\r\n" for i in range(20000))), 431),
    Row("a_method_without_an_end", "G" * 100000, 414),
    Row("a_large_body", length(2 * LIMIT + (256 << 10) + 1, ""), 413),
    Row("the_largest_body", sized(BODY.ljust(2 * LIMIT + (256 << 10))), 201, closes=False, made=1),
    Row("a_large_body_in_chunks", post(CHUNKED, body=chunk(" " * 65536) * 5 + LAST), 413),
    Row("a_large_payload", sized(json.dumps({"payload": "x" * (LIMIT + 1)})), 400, closes=False),
    Row("the_largest_payload", sized(json.dumps({"payload": "x" * LIMIT, "in": "1h"})), 201, closes=False,
        made=1),
]

TURNS = [
    Row("three_at_once", get("/livez") * 3, 200, 200, 200, closes=False),
    Row("right_behind_wrong", sized("{") + sized(BODY) + as_bytes(get("/nowhere")) + sized(BODY),
        400, 201, 404, 201, closes=False, made=2),
    Row("nothing_behind_the_last", get("/livez", "Connection: close\r\n") + BAD, 200),
    Row("nothing_behind_a_broken_one", length("+1") + BAD, 400),
    Row("nothing_behind_1_0", get("/livez", version="HTTP/1.0") + BAD, 200),
]


class Wire:
    """A raw connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough

    def read(self, is_head=False):
        """Returns the status of the next response; None if the server has closed the connection."""
        try:
            line = self.file.readline()
        except ConnectionResetError:
            return None
        except TimeoutError:
            return "it waits"
        if not line:
            return None
        if not re.match(rb"HTTP/1\.[01] \d{3} ", line):
            return line
        status = line.split()[1]
        headers = {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        has_body = not is_head and status not in (b"100", b"204")
        body = self.file.read(int(headers.get("content-length", 0))) if has_body else b""
        if int(status) >= 400:  # every error has a problem as its body, and nothing else
            assert headers["content-type"] == "application/problem+json", headers
            assert is_head or json.loads(body)["status"] == int(status), body
        return int(status)

    def rest(self):
        """Returns the statuses of all responses until the connection is closed."""
        try:
            return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d+)", self.file.read())]
        except ConnectionResetError:
            return []
        except TimeoutError:
            return ["it waits"]

    def close(self):
        self.file.close()
        self.socket.close()


def answers(port, row):
    """Returns the statuses of all responses. If the connection is to stay open, sends one more
    request, whose response must follow; otherwise the server must close the connection."""
    wire = Wire(port)
    is_head = row.sent.startswith(b"HEAD")
    wire.send(row.sent if row.closes else row.sent + as_bytes(get("/readyz")))
    heard = []
    for i in range(len(row.statuses) + (not row.closes)):
        heard.append(wire.read(is_head and i == 0))
        if not isinstance(heard[-1], int):
            break
    if row.closes and isinstance(heard[-1] if heard else 0, int):
        heard += wire.rest()
    wire.close()
    return heard


class Stage:
    """A server and a well-behaved client."""

    def __init__(self):
        self.server = Server("--store", "memory", "--http", "127.0.0.1:0", "--max-payload", str(LIMIT))
        self.port = int(self.server.places["http"].rsplit(":", 1)[1])
        self.client = self.server.client()
        self.wire = Wire(self.port)

    def good(self):
        topics = self.client.ask("TOPICS")
        assert set(topics) <= {"good"}, topics
        if not topics:
            return 0
        counts = self.client.ask("TOPIC", "good")
        counts = dict(zip(counts[::2], counts[1::2]))
        return counts["scheduled"] + counts["ready"]

    def is_well(self):
        self.wire.send(as_bytes(get("/livez")))
        return self.client.ask("PING") == "PONG" and self.wire.read() == 200

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *how):
        self.client.close()
        self.wire.close()
        self.server.__exit__(*how)


def play(rows):
    wrong = []
    with Stage() as stage:
        for row in rows:
            before = stage.good()
            heard = answers(stage.port, row)
            wanted = row.statuses + ([] if row.closes else [200])
            made = stage.good() - before
            if heard != wanted or made != row.made:
                wrong.append(f"{row.name}: heard {heard}, wanted {wanted}; made {made}")
            assert stage.is_well(), row.name
    assert not wrong, "\n    ".join(["", *wrong])


def test_smuggling():
    play(SMUGGLING)


def test_chunks():
    play(CHUNKS)


def test_syntax():
    play(SYNTAX)


def test_paths():
    play(PATHS)


def test_methods():
    play(METHODS)


def test_bodies():
    play(BODIES)


def test_sizes():
    play(SIZES)


def test_turns():
    play(TURNS)


def test_a_row_cut_at_every_byte():
    """An incomplete request gets no response."""
    whole = sized(BODY)
    with Stage() as stage:
        for at in range(1, len(whole)):
            wire = Wire(stage.port)
            wire.send(whole[:at])
            wire.close()
        assert stage.is_well() and stage.good() == 0
        for at in range(1, len(whole)):
            wire = Wire(stage.port)
            wire.send(whole[:at])
            wire.send(whole[at:])
            assert wire.read() == 201
            wire.close()
        assert stage.is_well() and stage.good() == len(whole) - 1


def test_headers_drop_by_drop():
    """A client that never ends its headers is read until they are too large."""
    with Stage() as stage:
        wires = [Wire(stage.port) for _ in range(MANY)]
        for wire in wires:
            wire.send(as_bytes("GET /livez HTTP/1.1\r\n" + HOST))
        for i in range(100):
            for wire in wires:
                wire.send(as_bytes(f"X-{i}: " + "b" * 500 + "\r\n"))
            assert stage.is_well()
        assert all(wire.read() in (431, None) for wire in wires)
        for wire in wires:
            wire.close()
        assert stage.is_well()


main(dict(globals()))
