static const int64_t t0[] = {0};
static const int64_t t1[] = {6, 1, 4, 1};
static int32_t fx_steps(
    Frame<5>& f, void* graph, const H* in, const int64_t* numbers, H* out, int64_t* out_numbers) {
    char* p[3];
    const int64_t n_s0 = numbers[0];
    const double f_f = fx_float(numbers[1]);
    const int64_t d0[] = {6, 0, -1, 2, n_s0, 4, 4, 1, 6, 0, -1, 2, 4, 4, 4, 1};
    TRY(fx_check_inputs(in, d0, 2));
    char* ip[1];
    TRY(fx_pointers(ip, in, t0, 1));
    int64_t o[2];
    o[0] = 0;
    o[1] = o[0] + fx_align((16 * n_s0));
    if (!(f.scratch = fx_scratch_take(graph, o[1] + fx_align((16 * n_s0))))) return 1;
    char* scratch;
    TRY(fx_pointer(f.scratch, &scratch));
    p[0] = scratch + o[0];
    if (fx_run("scale (model.py:3 in forward)", scale, 1, 4, ip[0], p[0], (int64_t)(4 * n_s0), fx_bits(f_f))) return fx_index_error("model.py:3 in forward");
    fx_at("aten::mm");
    const int64_t d1[] = {6, 2, n_s0, 4, 4, 1};
    TRY(fx_carve(&f.h[0], f.scratch, d1, p[0] - scratch));
    p[1] = scratch + o[1];
    TRY(fx_carve(&f.h[1], f.scratch, d1, p[1] - scratch));
    {
      if (aoti_torch_cpu_mm_out(f.h[1], f.h[0], in[1])) return fx_explain(1, ""); }
    fx_free(f.h[0]);
    if (fx_run("scale", scale, 1, 4, p[1], p[0], (int64_t)(4 * n_s0), fx_bits(f_f))) return fx_index_error("");
    fx_free(f.h[1]);
    TRY(fx_new(&f.h[2], d1, &p[2]));
    if (fx_run("scale", scale, 1, 4, p[0], p[2], (int64_t)(4 * n_s0), fx_bits(f_f))) return fx_index_error("");
    TRY(fx_view(&f.h[3], f.h[2], t1, 4));
    const int64_t d2[] = {6, 1, n_s0, 4};
    TRY(fx_view(&f.h[4], in[0], d2, 1));
    TRY(aoti_torch_new_tensor_handle(f.h[2], &out[0]));
    out[1] = fx_move(f.h[3]);
    out[2] = fx_move(f.h[2]);
    TRY(aoti_torch_new_tensor_handle(in[0], &out[3]));
    out[4] = fx_move(f.h[4]);
    out_numbers[0] = (2 * n_s0 + 1);
    out_numbers[1] = fx_bits(f_f);
    return 0;
}
extern "C" __attribute__((visibility("default"))) int32_t fx_entry(
    void* graph, const H* in, const int64_t* numbers, H* out, int64_t* out_numbers) {
    Frame<5> f(graph);
    return fx_steps(f, graph, in, numbers, out, out_numbers);
}
