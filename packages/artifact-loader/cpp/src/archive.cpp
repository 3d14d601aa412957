#include "archive.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "hashing.hpp"

namespace fxa {
namespace {

constexpr size_t ALIGNMENT = 64, DIGEST = 64, LOCAL = 30, CENTRAL = 46, END = 22, MOST_ENTRIES = 0xFFFE;
constexpr const char *MANIFEST = "manifest.json", *SIGNATURE = "signature.json";

Refused damaged(const std::string &what) { return Refused("FXA102", "the artifact is damaged: " + what); }

constexpr uint64_t ELSEWHERE = 0xFFFFFFFF;  // of 32 bits: it is in the 64-bit field
constexpr size_t WIDE_END = 56, WIDE_LOCATOR = 20;

struct Entry {
    std::string name;
    uint64_t size, crc, offset;
    bool wide;  // of a file in zip's 64-bit form
};

uint64_t number(std::string_view from, size_t at, int bytes) {
    if (at > from.size() || from.size() - at < size_t(bytes)) throw damaged("it was cut off");
    uint64_t made = 0;
    for (int i = bytes; i--;) made = made << 8 | (unsigned char)from[at + i];
    return made;
}

void put(std::string &to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to += char(value >> (8 * i) & 255);
}

// version, flags (UTF-8), stored, no time, the first day that zip knows
void put_fixed(std::string &to, const Entry &entry) {
    uint64_t size = entry.wide ? ELSEWHERE : entry.size;
    for (uint64_t word : {entry.wide ? 45 : 20, 0x800, 0, 0, 0x21}) put(to, word, 2);
    for (uint64_t word : {entry.crc, size, size}) put(to, word, 4);
    put(to, entry.name.size(), 2);
}

std::string local_header(const Entry &entry) {
    size_t sizes = entry.wide ? 20 : 0;
    size_t padding = (ALIGNMENT - (entry.offset + LOCAL + entry.name.size() + sizes) % ALIGNMENT) % ALIGNMENT;
    if (padding && padding < 4) padding += ALIGNMENT;
    std::string made("PK\3\4");
    put_fixed(made, entry);
    put(made, sizes + padding, 2);
    made += entry.name;
    if (entry.wide) {
        put(made, 1, 2);
        put(made, 16, 2);
        for (int i = 0; i < 2; i++) put(made, entry.size, 8);
    }
    if (padding) {
        put(made, 0xFA57, 2);
        put(made, padding - 4, 2);
        made.append(padding - 4, '\0');
    }
    return made;
}

std::string tail(const std::vector<Entry> &entries, size_t offset, std::string_view digest) {
    std::string made;
    bool wide = entries[0].wide;
    for (const Entry &entry : entries) {
        made += "PK\1\2";
        put(made, 0x300 | (wide ? 45 : 20), 2);
        put_fixed(made, entry);
        put(made, wide ? 28 : 0, 2);
        made.append(6, '\0');
        put(made, uint64_t(0100644) << 16, 4);
        put(made, wide ? ELSEWHERE : entry.offset, 4);
        made += entry.name;
        if (!wide) continue;
        put(made, 1, 2);
        put(made, 24, 2);
        for (uint64_t word : {entry.size, entry.size, entry.offset}) put(made, word, 8);
    }
    size_t length = made.size();
    if (wide) {
        made += "PK\6\6";
        put(made, WIDE_END - 12, 8);
        for (uint64_t word : {0x300 | 45, 45}) put(made, word, 2);
        for (int i = 0; i < 2; i++) put(made, 0, 4);
        for (uint64_t word : {entries.size(), entries.size(), length, offset}) put(made, word, 8);
        made += "PK\6\7";
        put(made, 0, 4);
        put(made, offset + length, 8);
        put(made, 1, 4);
    }
    made += "PK\5\6";
    for (uint64_t word : {size_t(0), size_t(0), entries.size(), entries.size()}) put(made, word, 2);
    for (uint64_t word : {length, offset}) put(made, wide ? ELSEWHERE : word, 4);
    put(made, DIGEST, 2);
    return made.append(digest);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_name(const std::string &name) {
    if (name.empty() || name.size() > 200 || name.back() == '/') return false;
    for (size_t i = 0; i < name.size(); i++) {
        bool begins = i == 0 || name[i - 1] == '/';
        if (!is_letter(name[i]) && (begins || !std::strchr("._-/", name[i]))) return false;
    }
    return true;
}

std::vector<Entry> directory(std::string_view bytes) {
    size_t end = bytes.size() - END - DIGEST;
    size_t count = number(bytes, end + 10, 2), at = number(bytes, end + 16, 4);
    if (bytes.substr(end, 4) != "PK\5\6" || number(bytes, end + 20, 2) != DIGEST || count > MOST_ENTRIES) {
        throw damaged("its end is missing");
    }
    for (char c : bytes.substr(bytes.size() - DIGEST)) {
        if (c & 0x80) throw damaged("its end was changed");
    }
    bool wide = at == ELSEWHERE;
    if (wide) {
        size_t place = number(bytes, end < WIDE_LOCATOR ? 0 : end - WIDE_LOCATOR + 8, 8);
        at = number(bytes, std::min(place, bytes.size()) + 48, 8);
    }
    std::vector<Entry> entries;
    for (size_t i = 0; i < count; i++) {
        at = std::min(at, bytes.size());
        size_t length = number(bytes, at + 28, 2), extra = number(bytes, at + 30, 2);
        Entry entry{"", number(bytes, at + 24, 4), number(bytes, at + 16, 4), number(bytes, at + 42, 4), wide};
        bool is_record = bytes.substr(at, 4) == "PK\1\2";
        at += CENTRAL;
        if (!is_record || at > bytes.size()) throw damaged("its directory is broken");
        entry.name = bytes.substr(at, length);
        at += length;
        if (!is_name(entry.name)) throw damaged("its directory is broken");
        if (wide) {
            entry.size = number(bytes, at + 4, 8);
            entry.offset = number(bytes, at + 20, 8);
            at += extra;
        }
        entries.push_back(entry);
    }
    return entries;
}

// Files of version 2.1 have checksums or BLAKE3, those before have BLAKE3; one of 2.2 has a program for GPUs besides.
int64_t checked_minor(const Json &version) {
    int64_t major = version.list().at(0).integer(), minor = version.list().at(1).integer();
    if (major != 2 || minor < 0 || minor > 2 || version.list().size() != 2) {
        throw Refused("FXA104", "the artifact is of version " + std::to_string(major) + "." + std::to_string(minor) +
                                    " of the format, this loader reads 2.0 to 2.2");
    }
    return minor;
}

bool any_has(const Json &objects, const char *name) {
    return std::any_of(objects.members.begin(), objects.members.end(), [&](const auto &member) { return member.second.find(name); });
}

}  // namespace

Archive::Archive(const std::string &path) : file_(std::make_shared<Mapping>(path)) {
    if (file_->failure) throw Refused("FXA101", path + " cannot be opened: " + std::strerror(file_->failure));
    if (bytes().substr(0, 4) != "PK\3\4") throw Refused("FXA101", path + " is no artifact of fxstack");
    if (bytes().size() < END + DIGEST) throw damaged("it was cut off");
    check_layout();
    check_contents();
}

void Archive::check_layout() {
    std::vector<Entry> entries = directory(bytes());
    if (entries.empty() || entries[0].name != MANIFEST) throw Refused("FXA101", "a zip file that is no artifact of fxstack");
    size_t offset = 0;
    for (const Entry &entry : entries) {
        std::string header = local_header(entry);
        bool is_here = entry.offset == offset && bytes().substr(offset, header.size()) == header;
        offset += header.size();
        if (!is_here || entry.size > bytes().size() - offset || places_.count(entry.name)) throw damaged("a header was changed");
        places_[entry.name] = {offset, entry.size};
        offset += entry.size;
    }
    if (places_.count(SIGNATURE) && entries.back().name != SIGNATURE) throw damaged("its signature is not at its end");
    if (bytes().substr(offset) != tail(entries, offset, bytes().substr(bytes().size() - DIGEST))) {
        throw damaged("its directory was changed");
    }
}

void Archive::check_contents() {
    Place place = places_.at(MANIFEST);
    std::string_view text = bytes().substr(place.start, place.size);
    std::string sealed(text);
    auto signature = places_.find(SIGNATURE);
    if (signature != places_.end()) sealed += bytes().substr(signature->second.start, signature->second.size);
    if (digest_of(sealed.data(), sealed.size()) != bytes().substr(bytes().size() - DIGEST)) {
        throw Refused("FXA103", "the manifest of the file was changed");
    }
    bool is_signed = signature != places_.end();
    if (is_signed) places_.erase(signature);
    try {
        manifest_ = parse_json(text);
        if (manifest_["format"].string() != "fxstack artifact") throw Refused("FXA101", "this is no fxstack artifact");
        int64_t minor = checked_minor(manifest_["version"]);
        const Json &contents = manifest_["contents"];
        bool has_checksums = minor >= 1 && any_has(contents, "checksum");
        if (is_signed && has_checksums) throw Refused("FXA113", "it is signed, and has checksums, which show no intent");
        if (contents.members.size() + 1 != places_.size()) throw damaged("its manifest lists other contents than it has");
        for (const auto &[name, stated] : contents.members) {
            size_t size = 0;
            const char *data = content(name, &size);
            const Json &digests = stated[has_checksums ? "checksum" : "blake3"];
            if (stated["size"].integer() != int64_t(size) || !fits(data, size, digests, has_checksums)) throw Refused("FXA103", name + " in the file was changed");
        }
    } catch (const std::logic_error &error) {
        throw damaged(std::string("the manifest cannot be read (") + error.what() + ")");
    }
}

char *Archive::content(const std::string &name, size_t *size) const {
    auto found = places_.find(name);
    if (found == places_.end() || name == MANIFEST) throw damaged(name + " is missing");
    *size = found->second.size;
    return file_->data + found->second.start;
}

}  // namespace fxa
