"""Options of stock's code generator, in families: what each family is here. Their names are those of torch 2.13."""

from __future__ import annotations

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Options with one answer. ``here``: what happens in their place; ``is_done``: that is what they ask for."""

    title: str
    here: str
    listed: str
    is_done: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The options, by their full names."""
        return tuple(self.listed.split())


FAMILIES = (
    Family(
        "Packages (`torch.compile`'s own)",
        "nothing is packaged",
        """
        use_aoti
        """,
    ),
    Family(
        "Always so",
        "these are how the stack works: random numbers are eager's, each operator's result is rounded "
        "to its dtype, strides are eager's, nothing dead is kept, buffers are used again, every input "
        "is checked by a guard, and nothing is chosen by measuring; False changes nothing",
        """
        alignment_asserts allow_buffer_reuse assert_indirect_indexing dce deterministic
        emulate_precision_casts emulate_precision_casts_on_saved_tensors enable_auto_functionalized_v2
        fallback_random implicit_fallbacks inplace_buffers keep_output_stride online_softmax scalar_asserts
        size_asserts static_weight_shapes use_dce use_mixed_mm write_are_deterministic_algorithms_enabled
        """,
        is_done=True,
    ),
    Family(
        "Fusion into matrix products",
        "a matrix product is the library's kernel, as in eager; what follows it is fused into kernels "
        "of its own",
        """
        epilogue_fusion epilogue_fusion_first epilogue_fusion_user_defined_triton_kernel
        epilogue_fusion_with_atomic_add prologue_fusion
        """,
    ),
    Family(
        "How choices are measured (`autotune_num_choices_displayed`, ...)",
        "what is measured with the option `autotune` is fixed: tiles of 16-bit matrix products, with what "
        "is computed from them, and launches of kernels",
        """
        autoheuristic_collect.mixed_mm autoheuristic_collect.pad_mm autoheuristic_log_path
        autoheuristic_use.mixed_mm autoheuristic_use.pad_mm autotune_fallback_to_aten autotune_in_subproc
        autotune_local_cache autotune_lookup_table autotune_multi_device autotune_num_choices_displayed
        autotune_remote_cache benchmark_combo_kernel benchmark_epilogue_fusion benchmark_fusion benchmark_harness
        benchmark_kernel bundled_autotune_remote_cache combo_kernel_autotune_grouping combo_kernels_autotune
        coordinate_descent_check_all_directions coordinate_descent_search_radius incremental_autotune
        inductor_default_autotune_rep inductor_default_autotune_warmup lookup_table.check_src_hash
        lookup_table.table max_autotune_allow_flexible_layouts max_autotune_conv_backends
        max_autotune_conv_bwd_input_backends max_autotune_conv_bwd_weight_backends max_autotune_flex_search_space
        max_autotune_gemm_backends max_autotune_gemm_search_space max_autotune_prune_choices_based_on_shared_mem
        max_autotune_report_choices_stats max_autotune_subproc_graceful_timeout_seconds
        max_autotune_subproc_result_timeout_seconds max_autotune_subproc_terminate_timeout_seconds
        max_epilogue_benchmarked_choices multi_kernel_hints pipeline_max_autotune_gemm search_autotune_cache
        trace.log_autotuning_results triton.autotune_at_compile_time triton.autotune_cublasLt
        triton.autotune_pointwise triton.autotune_with_sample_inputs triton.mix_order_reduction_autotune_split_size
        triton.multi_kernel unsafe_ignore_unsupported_triton_autotune_args use_experimental_benchmarker
        use_torch_profiler_benchmarker
        """,
    ),
    Family(
        "CUDA graphs",
        "what is recorded is replayed where nobody can tell, by rules of this stack's own",
        """
        cudagraph_policy cudagraph_unsafe_unbacked_ops custom_should_partition_ops graph_partition
        triton.cudagraph_capture_sizes triton.cudagraph_dynamic_shape_warn_limit
        triton.cudagraph_min_partition_size triton.cudagraph_or_error triton.cudagraph_partition_memory_budget
        triton.cudagraph_skip_dynamic_graphs triton.cudagraph_support_input_mutation triton.cudagraph_trees
        triton.cudagraph_trees_history_recording triton.cudagraph_trees_objgraph
        triton.cudagraph_unexpected_rerecord_limit triton.fast_path_cudagraph_asserts
        triton.force_cudagraph_sync triton.force_cudagraphs_warmup
        triton.reorder_for_reducing_graph_partitions triton.skip_cudagraph_warmup
        triton.slow_path_cudagraph_asserts
        """,
    ),
    Family(
        "Passes over torch's own graphs",
        "the pass does not exist here, and a function of yours is not called; a backend of your own "
        "is the place for it (`backend=` takes a callable)",
        """
        _post_fusion_custom_pass _pre_fusion_custom_pass add_pre_grad_passes
        auto_chunker.amplify_ratio_threshold auto_chunker.enable auto_chunker.num_chunk
        auto_chunker.output_size_threshold b2b_gemm_pass batch_fusion custom_partitioner_fn
        decompose_mem_bound_mm disabled_passes external_matmul fallback_by_default
        fallback_embedding_bag_byte_unpack force_fuse_int_mm_with_mul fx_passes_numeric_check group_fusion
        is_predispatch joint_custom_post_pass joint_custom_pre_pass keep_addmm_fused_for_half_dtypes
        min_num_split mixed_mm_choice optimize_scatter_upon_const_tensor partitioned_scatter_enabled
        partitioned_scatter_max_partitions partitioned_scatter_memory_budget
        partitioned_scatter_min_partitions pattern_matcher post_grad_custom_post_pass
        post_grad_custom_pre_pass post_grad_fusion_options pre_grad_custom_pass pre_grad_fusion_options
        pre_grad_pass_timing remove_pre_grad_passes selective_decompose split_cat_fx_passes
        use_joint_graph_passes use_post_grad_passes use_pre_grad_passes
        """,
    ),
    Family(
        "Scheduling and limits",
        "the scheduler decides by rules of its own",
        """
        _conv_default_backends _realize_acc_reads_threshold_default _realize_opcount_threshold_default
        aggressive_fusion assume_32bit_indexing assume_aligned_inputs assume_unaligned_fallback_output
        bw_outputs_user_visible combo_kernel_allow_mixed_sizes combo_kernel_foreach_dynamic_shapes
        combo_kernel_max_distance combo_kernel_max_num_args combo_kernel_max_num_nodes
        combo_kernel_peak_memory_increase_gb combo_kernel_peak_memory_pct_threshold
        combo_kernel_per_subkernel_blocks combo_kernels combo_kernels_pointwise_only compute_all_bounds
        delay_realize_cheap_outputs disable_cpp_codegen do_not_emit_runtime_assertions force_pointwise_cat
        fx_wrapper loop_index_inversion_in_fusion loop_ordering_after_fusion loop_reindexing_after_fusion
        max_complex_pointwise_cat_inputs max_fusion_buffer_group_pairwise_attempts max_fusion_size
        max_fusion_unique_io_buffers max_pointwise_cat_inputs memory_planning memory_pool min_overlap_ratio
        pick_loop_orders realize_acc_reads_size_threshold realize_acc_reads_threshold
        realize_cpu_acc_reads_threshold realize_cpu_opcount_threshold realize_opcount_threshold
        realize_reads_threshold reorder_for_locality reorder_for_peak_memory score_fusion_memory_threshold
        size_threshold_for_succ_based_strategy small_memory_access_threshold split_reductions
        unbacked_symint_fallback unroll_reductions_threshold wrap_inductor_compiled_regions
        """,
    ),
    Family(
        "Layouts and padding",
        "strides are those of eager, and nothing is padded",
        """
        cache_sdpa_constraint can_inplace_pad_graph_input comprehensive_padding conv_1x1_as_mm
        disable_padding_cpu expand_dimension_for_pointwise_nodes force_layout_optimization force_shape_pad
        inplace_padding layout_opt_default layout_optimization pad_channels_last pad_dynamic_shapes
        pad_outputs padding_alignment_bytes padding_stride_threshold permute_fusion shape_padding
        triton.transpose_discontiguous_tensor_descriptor triton_kernel_default_layout_constraint
        """,
    ),
    Family(
        "Freezing parameters",
        "parameters stay inputs of the graph, and may change",
        """
        always_keep_tensor_constants constant_and_index_propagation cpp.enable_concat_linear
        cpp.weight_prepack efficient_conv_bn_eval_fx_passes enable_linear_binary_folding freezing
        freezing_discard_parameters joint_graph_constant_folding
        """,
    ),
    Family(
        "Arithmetic",
        "arithmetic is eager's to the rounding of each operator; `mode=\"strict\"` gives eager's bits "
        "on a CPU",
        """
        _use_fp64_for_unbacked_floats align_random_eager apply_gumbel_max_trick batch_invariant
        cpp.enable_floating_point_contract_flag cpp.enable_unsafe_math_opt_flag cpp.use_decompose_tanh
        eager_numerics.disable_ftz eager_numerics.division_rounding eager_numerics.use_pytorch_libdevice
        triton.codegen_upcast_to_fp32 use_fast_math
        """,
    ),
    Family(
        "Generated C++",
        "the generator of C++ has rules of its own; threads are those of `torch.set_num_threads`",
        """
        cpp.dynamic_threads cpp.enable_grouped_gemm_template cpp.enable_loop_tail_vec
        cpp.enable_tiling_heuristics cpp.fallback_scatter_reduce_sum cpp.force_inline_kernel
        cpp.gemm_cache_blocking cpp.gemm_max_k_slices cpp.gemm_thread_factors cpp.march
        cpp.max_horizontal_fusion_size cpp.min_chunk_size cpp.no_redundant_loops cpp.simdlen cpp.threads
        cpp.use_constexpr_for_int_array cpp.use_small_dequant_buffer cpp.use_two_step_variance_threshold
        cpp.vec_isa_ok cpp_wrapper cpp_wrapper_build_separate
        """,
    ),
    Family(
        "Generated Triton code",
        "the generator of Triton code has rules of its own",
        """
        dynamic_scale_rblock triton.coalesce_tiling_analysis triton.cooperative_reductions
        triton.decompose_k_threshold triton.decompose_sort_ops triton.dense_indexing triton.divisible_by_16
        triton.dynamic_disable_pipelining triton.emit_pointer_range_32 triton.enable_pdl
        triton.enable_persistent_tma_matmul triton.enable_template_tma_store
        triton.enable_tma_load_for_template_epilogue triton.force_cooperative_reductions triton.max_tiles
        triton.min_split_scan_rblock triton.mix_order_reduction triton.mix_order_reduction_allow_multi_stages
        triton.mix_order_reduction_initial_xblock triton.mix_order_reduction_max_reads
        triton.mix_order_reduction_non_strict_mode triton.mix_order_reduction_split_size triton.native_matmul
        triton.nested_reduction triton.num_decompose_k_splits triton.persistent_reductions
        triton.prefer_nd_tiling triton.skip_l1_cache triton.spill_threshold triton.tile_reductions
        triton.tiling_prevents_pointwise_fusion triton.tiling_prevents_reduction_fusion triton.use_block_ptr
        triton.use_tensor_descriptor triton.use_two_step_variance_min_numel
        triton.use_two_step_variance_threshold triton_disable_device_detection
        """,
    ),
    Family(
        "Debugging and tracing",
        "nothing is written, and no value is looked at; `fxstack.explain` shows graphs, breaks and guards, the "
        "loggers `fxstack` and `dynamo_capture` report",
        """
        _profile_var annotate_training comment_origin cpp.descriptive_names cpp.enable_kernel_profile debug
        debug_fusion debug_index_asserts debug_ir_traceback developer_warnings disable_progress
        enabled_metric_tables generate_intermediate_hooks kernel_name_max_ops log_tlparse nan_asserts
        profile_bandwidth profile_bandwidth_output profile_bandwidth_regex
        profile_bandwidth_with_do_bench_using_profiling profiler_mark_wrapper_call
        reorder_for_peak_memory_debug runtime_triton_nan_asserts save_args torchinductor_worker_logpath
        trace.compile_profile trace.debug_dir trace.debug_log trace.dot_graph_shape trace.draw_orig_fx_graph
        trace.enabled trace.fx_graph trace.fx_graph_transformed trace.graph_diagram trace.graph_diagram_format
        trace.info_log trace.ir_post_fusion trace.ir_pre_fusion trace.log_url_for_graph_xform
        trace.orig_fx_graph_diagram_format trace.output_code trace.provenance_tracking_level
        trace.save_real_tensors trace.upload_tar triton.debug_dump_kernel_inputs triton.debug_sync_graph
        triton.debug_sync_kernel triton.descriptive_names triton.max_kernel_dump_occurrences
        triton.proton_group_by_sm triton.proton_output_dir triton.proton_per_cta_occupancy
        triton.proton_profiling triton.proton_split_invocations triton.store_cubin triton.unique_kernel_names
        triton.unique_user_kernel_names verbose_progress warn_mix_layout worker_log_path
        worker_suppress_logging
        """,
    ),
    Family(
        "Compiling processes and caches",
        "compiling happens in the calling thread, and what is kept lies in `cache_dir`; there is no "
        "remote cache",
        """
        bundle_triton_into_fx_graph_cache compile_threads compile_worker_wait_timeout
        cpp_cache_precompile_headers enable_caching_generated_triton_templates file_lock_timeout
        fx_graph_remote_cache global_cache_dir keep_static_cubin_raw non_blocking_remote_cache_write
        precompilation_timeout_seconds quiesce_async_compile_pool quiesce_async_compile_time
        remote_gemm_autotune_cache static_launch_user_defined_triton_kernels strict_static_cuda_launcher
        unsafe_marked_cacheable_functions unsafe_skip_cache_dynamic_shape_guards use_fast_triton_launcher
        use_launch_metadata_schema use_static_cuda_launcher worker_start_method
        """,
    ),
    Family(
        "Communication",
        "collectives run where the program calls them",
        """
        _collective.auto_select _collective.one_shot_all_reduce_threshold_bytes _fuse_ddp_bucket_size
        _fuse_ddp_communication _fuse_ddp_communication_passes _micro_pipeline_tp
        aten_distributed_optimizations.allow_comms_decompositions
        aten_distributed_optimizations.bucket_exposed_first aten_distributed_optimizations.bucket_mode
        aten_distributed_optimizations.bucket_only_internode_comms
        aten_distributed_optimizations.collective_bucketing
        aten_distributed_optimizations.collective_estimator aten_distributed_optimizations.compute_estimator
        aten_distributed_optimizations.compute_overlap_multipler
        aten_distributed_optimizations.custom_runtime_estimation
        aten_distributed_optimizations.enable_fusion_regions
        aten_distributed_optimizations.enable_low_contention_collectives
        aten_distributed_optimizations.enable_overlap_scheduling
        aten_distributed_optimizations.insert_overlap_deps
        aten_distributed_optimizations.log_final_collectives_estimations
        aten_distributed_optimizations.low_contention_min_bytes_per_rank
        aten_distributed_optimizations.low_contention_skip_overlap_check
        aten_distributed_optimizations.max_coll_distance aten_distributed_optimizations.max_compute_pre_fetch
        aten_distributed_optimizations.max_in_flight_gb aten_distributed_optimizations.max_memory_increase_gb
        aten_distributed_optimizations.max_memory_increase_ratio
        aten_distributed_optimizations.overlap_scheduling_autofix_cycles
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_bucket_cap_mb
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_max_bucket_cap_mb
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_min_bucket_cap_mb
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_saturation_calibration_multiplier
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_verbose
        aten_distributed_optimizations.prioritize_bucketing_during_scheduling
        aten_distributed_optimizations.profile_guided_estimations_profile_path
        aten_distributed_optimizations.spmd_check aten_distributed_optimizations.spmd_mismatch
        bucket_all_gathers_bucket_mode bucket_all_gathers_fx bucket_all_gathers_fx_bucket_size_determinator
        bucket_all_reduces_fx bucket_all_reduces_fx_bucket_size_determinator
        bucket_reduce_scatters_bucket_mode bucket_reduce_scatters_fx
        bucket_reduce_scatters_fx_bucket_size_determinator collective_benchmark_nruns
        collective_benchmark_timeout cpu_gpu_bw dedup_reduce_scatters distributed_max_autotune_gemm
        estimate_op_runtime inter_node_bw intra_node_bw reorder_for_compute_comm_overlap
        reorder_for_compute_comm_overlap_passes reorder_prefetch_limit runtime_estimations_mms_benchmark
        """,
    ),
    Family(
        "Ahead-of-time packages",
        "nothing is packaged; artifacts are kept in `cache_dir` and found by the program's hash",
        """
        aot_inductor.allow_stack_allocation aot_inductor.aoti_shim_library aot_inductor.aoti_shim_library_path
        aot_inductor.autotune_per_kernel_alloc aot_inductor.check_lowerbound
        aot_inductor.compile_wrapper_opt_level aot_inductor.cross_target_platform aot_inductor.custom_op_libs
        aot_inductor.custom_ops_to_c_shims aot_inductor.debug_compile
        aot_inductor.debug_intermediate_value_printer aot_inductor.debug_symbols
        aot_inductor.dump_aoti_minifier aot_inductor.dynamic_linkage aot_inductor.embed_kernel_binary
        aot_inductor.emit_multi_arch_kernel aot_inductor.enable_frame_pointer aot_inductor.enable_line_tables
        aot_inductor.enable_lto aot_inductor.filtered_kernel_names aot_inductor.force_mmap_weights
        aot_inductor.link_libtorch aot_inductor.metadata aot_inductor.model_name_for_generated_files
        aot_inductor.output_path aot_inductor.package aot_inductor.package_constants_in_so
        aot_inductor.package_constants_on_disk_format aot_inductor.package_cpp_only
        aot_inductor.precompile_headers aot_inductor.presets aot_inductor.raise_error_on_ignored_optimization
        aot_inductor.repro_level aot_inductor.serialized_in_spec aot_inductor.serialized_out_spec
        aot_inductor.use_consts_asm_build aot_inductor.use_minimal_arrayref_interface
        aot_inductor.use_runtime_constant_folding aot_inductor.weight_use_caching_allocator
        aot_inductor_mode.compile_standalone enable_autograd_for_aot run_jit_post_compile_hook
        """,
    ),
    Family(
        "CUTLASS and nvcc",
        "no kernels of this kind are generated",
        """
        cuda.arch cuda.binary_remote_cache_force_write cuda.compile_opt_level cuda.cuda_cxx
        cuda.cutlass_backend_min_gemm_size cuda.cutlass_dir cuda.cutlass_dynamic_cluster_fallback
        cuda.cutlass_dynamic_cluster_shape cuda.cutlass_enabled_ops cuda.cutlass_epilogue_fusion_enabled
        cuda.cutlass_hash_with_compile_cmd cuda.cutlass_instantiation_level cuda.cutlass_max_profiling_configs
        cuda.cutlass_max_profiling_swizzle_options cuda.cutlass_op_allowlist_regex
        cuda.cutlass_op_denylist_regex cuda.cutlass_prescreening cuda.cutlass_tma_only
        cuda.enable_caching_codegen cuda.enable_cuda_lto cuda.enable_debug_info cuda.enable_ptxas_info
        cuda.generate_test_runner cuda.nvgemm_max_profiling_configs cuda.upload_to_binary_remote_cache
        cuda.use_binary_remote_cache cuda.use_fast_math cuda.version cutedsl_enable_autotuning
        cutlass.binary_remote_cache_force_write cutlass.compile_opt_level
        cutlass.cutlass_backend_min_gemm_size cutlass.cutlass_dir cutlass.cutlass_dynamic_cluster_fallback
        cutlass.cutlass_dynamic_cluster_shape cutlass.cutlass_enabled_ops
        cutlass.cutlass_epilogue_fusion_enabled cutlass.cutlass_hash_with_compile_cmd
        cutlass.cutlass_instantiation_level cutlass.cutlass_max_profiling_configs
        cutlass.cutlass_max_profiling_swizzle_options cutlass.cutlass_op_allowlist_regex
        cutlass.cutlass_op_denylist_regex cutlass.cutlass_prescreening cutlass.cutlass_tma_only
        cutlass.enable_caching_codegen cutlass.enable_debug_info cutlass.generate_test_runner
        cutlass.upload_to_binary_remote_cache cutlass.use_binary_remote_cache cutlass.use_fast_math
        nvgemm_max_profiling_configs nvgemm_supplement_configs
        """,
    ),
    Family(
        "Other devices and generators",
        "no code is generated for them; what runs there is run by torch's kernels",
        """
        cpu_backend cuda_backend halide.asserts halide.cpu_target halide.debug halide.gpu_target
        halide.scan_kernels halide.scheduler_cpu halide.scheduler_cuda mtia.disable_welford_reduction
        rocm.arch rocm.ck_dir rocm.ck_max_profiling_configs rocm.ck_supported_arch
        rocm.ck_tile_max_profiling_configs rocm.compile_opt_level rocm.contiguous_threshold
        rocm.flush_denormals rocm.generate_test_runner rocm.is_debug rocm.kBatch_sweep
        rocm.n_max_profiling_configs rocm.origami rocm.origami_topk rocm.print_kernel_resource_usage
        rocm.rocm_home rocm.save_temps rocm.split_k_threshold rocm.use_fast_math
        rocm.use_preselected_instances tpu_backend xpu.arch xpu.binary_remote_cache_force_write
        xpu.compile_opt_level xpu.cutlass_backend_min_gemm_size xpu.cutlass_dir
        xpu.cutlass_dynamic_cluster_fallback xpu.cutlass_dynamic_cluster_shape xpu.cutlass_enabled_ops
        xpu.cutlass_epilogue_fusion_enabled xpu.cutlass_hash_with_compile_cmd xpu.cutlass_instantiation_level
        xpu.cutlass_max_profiling_configs xpu.cutlass_max_profiling_swizzle_options
        xpu.cutlass_op_allowlist_regex xpu.cutlass_op_denylist_regex xpu.cutlass_prescreening
        xpu.cutlass_tma_only xpu.enable_caching_codegen xpu.enable_debug_info xpu.generate_test_runner
        xpu.oneapi_root xpu.upload_to_binary_remote_cache xpu.use_binary_remote_cache xpu.use_fast_math
        xpu.version xpu_backend
        """,
    ),
    Family(
        "What torch's own tests set",
        "it has no meaning outside of torch",
        """
        TYPE_CHECKING _cache_config_factory_keys _cache_config_ignore_prefix _raise_error_for_testing
        _save_config_ignore check_stack_no_cycles_TESTING_ONLY cpp.inject_log1p_bug_TESTING_ONLY
        cpp.inject_relu_bug_TESTING_ONLY force_disable_cudagraph_TESTING_ONLY inductor_choices_class
        is_nightly_or_source sleep_sec_TESTING_ONLY test_configs.assume_bucketing_reduces_latency
        test_configs.autotune_choice_desc_regex test_configs.autotune_choice_name_regex
        test_configs.bisect_keep_custom_backend_for_inductor test_configs.bisect_pre_grad_graph
        test_configs.distort_benchmarking_result test_configs.force_custom_op_decomposition
        test_configs.force_extern_kernel_in_multi_template test_configs.force_filter_reduction_configs
        test_configs.force_no_impl_grouping test_configs.graphsafe_rng_func_ignores_fallback_random
        test_configs.max_flex_configs test_configs.max_mm_configs test_configs.runtime_triton_dtype_assert
        test_configs.runtime_triton_shape_assert test_configs.static_cpp_dtype_assert
        test_configs.track_memory_lifecycle test_configs.use_libtorch
        triton.disallow_failing_autotune_kernels_TESTING_ONLY triton.inject_relu_bug_TESTING_ONLY
        """,
    ),
)
