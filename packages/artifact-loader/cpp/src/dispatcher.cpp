#include "dispatcher.hpp"

namespace fxa {

Dispatcher dispatcher;

namespace {

template <typename Function>
void find(Function &function, const char *name) {
    void *found = fxa_torch_function(name);
    if (!found) throw Refused("FXA107", std::string("torch is of a version without ") + name);
    function = reinterpret_cast<Function>(found);
}

// An operator of one tensor, whose other argument, if it has one, is left out; what it returned is in `result`, and its error is returned.
int32_t called(const char *name, Handle tensor, uint64_t *result) {
    Handle given = nullptr;
    check_torch(torch_functions.new_tensor_handle(tensor, &given));  // torch takes it
    uint64_t stack[2] = {uint64_t(given), 0};
    int32_t bad = dispatcher.call(name, "", stack, dispatcher.version);
    *result = stack[0];
    return bad;
}

Tensor mapped(const char *name, Handle tensor) {
    uint64_t result = 0;
    check_torch(called(name, tensor, &result));
    return Tensor(Handle(result));
}

}  // namespace

void find_dispatcher() {
    uint64_t (*version)() = nullptr;
    find(version, "aoti_torch_abi_version");
    find(dispatcher.call, "torch_call_dispatcher");
    find(dispatcher.new_list, "torch_new_list_reserve_size");
    find(dispatcher.push, "torch_list_push_back");
    find(dispatcher.size, "torch_list_size");
    find(dispatcher.item, "torch_list_get_item");
    find(dispatcher.delete_list, "torch_delete_list");
    dispatcher.version = version();
}

int64_t version_of(Handle tensor) {
    uint64_t result = 0;
    return called("aten::_version", tensor, &result) ? -1 : int64_t(result);
}

bool has_nan(Handle tensor) {
    Tensor any = mapped("aten::any", mapped("aten::isnan", tensor).get());
    void *content = nullptr;
    check_torch(torch_functions.get_data_ptr(any.get(), &content));
    return *static_cast<bool *>(content);
}

void zero(Handle tensor) { mapped("aten::zero_", tensor); }

Tensor clone(Handle tensor) { return mapped("aten::clone", tensor); }

}  // namespace fxa
