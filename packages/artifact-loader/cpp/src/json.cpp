#include "json.hpp"

#include <cerrno>
#include <cstdlib>

namespace fxa {
namespace {

[[noreturn]] void bad(const char *what) { throw std::invalid_argument(what); }

class Parser {
   public:
    explicit Parser(std::string_view text) : text_(text) {}

    Json whole() {
        Json made = value(0);
        space();
        if (at_ != text_.size()) bad("text behind the value");
        return made;
    }

   private:
    char peek() { return at_ < text_.size() ? text_[at_] : '\0'; }

    void space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) at_++;
    }

    void expect(char wanted) {
        space();
        if (peek() != wanted) bad("another character was expected");
        at_++;
    }

    bool word(std::string_view wanted) {
        if (text_.substr(at_, wanted.size()) != wanted) return false;
        at_ += wanted.size();
        return true;
    }

    Json value(int depth) {
        if (depth > 64) bad("nested too deep");
        space();
        Json made;
        switch (peek()) {
            case '{': object(made, depth); break;
            case '[': list(made, depth); break;
            case '"':
                made.kind = Json::Text;
                made.text = string();
                break;
            default:
                if (word("null")) break;
                if (word("true") || word("false")) {
                    made.kind = Json::Bool;
                    made.number = text_[at_ - 2] == 'u';
                    break;
                }
                number(made);
        }
        return made;
    }

    void object(Json &made, int depth) {
        made.kind = Json::Object;
        expect('{');
        space();
        while (peek() != '}') {
            space();
            std::string name = string();
            if (made.find(name)) bad("a key twice");
            expect(':');
            made.members.emplace_back(std::move(name), value(depth + 1));
            space();
            if (peek() == '}') break;
            expect(',');
        }
        expect('}');
    }

    void list(Json &made, int depth) {
        made.kind = Json::List;
        expect('[');
        space();
        while (peek() != ']') {
            made.items.push_back(value(depth + 1));
            space();
            if (peek() == ']') break;
            expect(',');
        }
        expect(']');
    }

    void number(Json &made) {
        size_t from = at_;
        while (at_ < text_.size() && std::string_view("+-.eE0123456789").find(text_[at_]) != std::string_view::npos) at_++;
        std::string digits(text_.substr(from, at_ - from));
        if (digits.empty()) bad("no value");
        char *end = nullptr;
        errno = 0;
        if (digits.find_first_of(".eE") == std::string::npos) {
            made.kind = Json::Int;
            made.number = std::strtoll(digits.c_str(), &end, 10);
        } else {
            made.kind = Json::Real;
            made.real = std::strtod(digits.c_str(), &end);
        }
        if (*end || errno) bad("no number");
    }

    std::string string() {
        if (peek() != '"') bad("no string");
        at_++;
        std::string made;
        for (;;) {
            if (at_ >= text_.size()) bad("a string without an end");
            char c = text_[at_++];
            if (c == '"') return made;
            if (c == '\\') {
                escape(made);
            } else {
                made += c;
            }
        }
    }

    void escape(std::string &made) {
        static constexpr std::string_view FROM = "\"\\/bfnrt", TO = "\"\\/\b\f\n\r\t";
        char c = at_ < text_.size() ? text_[at_++] : '\0';
        if (size_t found = FROM.find(c); c && found != std::string_view::npos) {
            made += TO[found];
        } else if (c == 'u') {
            std::string digits(text_.substr(at_, 4));
            char *end = nullptr;
            unsigned long code = std::strtoul(digits.c_str(), &end, 16);
            if (digits.size() != 4 || *end) bad("no character");
            at_ += 4;
            utf8(made, code);
        } else {
            bad("no escape");
        }
    }

    // A surrogate stands for itself: names are compared as they are written, and never shown.
    static void utf8(std::string &made, unsigned long code) {
        if (code < 0x80) {
            made += char(code);
        } else if (code < 0x800) {
            made += char(0xC0 | code >> 6);
            made += char(0x80 | (code & 63));
        } else {
            made += char(0xE0 | code >> 12);
            made += char(0x80 | (code >> 6 & 63));
            made += char(0x80 | (code & 63));
        }
    }

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace

const Json *Json::find(std::string_view name) const {
    for (const auto &member : members) {
        if (member.first == name) return &member.second;
    }
    return nullptr;
}

const Json &Json::operator[](std::string_view name) const {
    const Json *found = find(name);
    if (!found) throw std::invalid_argument("there is no " + std::string(name));
    return *found;
}

int64_t Json::integer() const {
    if (kind != Int) bad("no integer");
    return number;
}

const std::string &Json::string() const {
    if (kind != Text) bad("no text");
    return text;
}

const std::vector<Json> &Json::list() const {
    if (kind != List) bad("no list");
    return items;
}

Json parse_json(std::string_view text) { return Parser(text).whole(); }

}  // namespace fxa
