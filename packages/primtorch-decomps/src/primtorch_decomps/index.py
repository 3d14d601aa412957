"""Which module declares an operator's formula or rule; written by ``tools/operator_index.py``.

Names are without ``aten.``. Operators on lists depend on torch's version and stand under ``BY_PREFIX``.
"""

DECOMPOSED = {
    "primtorch_decomps.decomps.arithmetic.binary": (
        "__lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor add.Scalar add.Tensor "
        "atan2.default bitwise_and.Scalar bitwise_and.Tensor bitwise_left_shift.Tensor "
        "bitwise_left_shift.Tensor_Scalar bitwise_or.Scalar bitwise_or.Tensor bitwise_right_shift.Tensor "
        "bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Tensor div.Scalar div.Tensor "
        "floor_divide.Scalar floor_divide.default fmax.default fmin.default fmod.Scalar fmod.Tensor "
        "heaviside.default hypot.default logaddexp.default maximum.default minimum.default mul.Scalar "
        "mul.Tensor pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor remainder.Scalar remainder.Scalar_Tensor "
        "remainder.Tensor rsub.Scalar rsub.Tensor sub.Scalar sub.Tensor true_divide.Tensor xlogy.Tensor "
    ),
    "primtorch_decomps.decomps.arithmetic.comparison": (
        "eq.Scalar eq.Tensor ge.Scalar ge.Tensor gt.Scalar gt.Tensor le.Scalar le.Tensor "
        "logical_and.default logical_or.default logical_xor.default lt.Scalar lt.Tensor ne.Scalar ne.Tensor "
    ),
    "primtorch_decomps.decomps.arithmetic.division_modes": "div.Scalar_mode div.Tensor_mode",
    "primtorch_decomps.decomps.arithmetic.elementary": (
        "angle.default logaddexp2.default mvlgamma.default round.decimals special_entr.default "
        "special_xlog1py.default "
    ),
    "primtorch_decomps.decomps.arithmetic.moments": (
        "std.correction std_mean.correction var.correction var_mean.correction "
    ),
    "primtorch_decomps.decomps.arithmetic.reductions": (
        "_is_all_true.default _is_any_true.default all.default all.dim all.dims amax.default amin.default "
        "aminmax.default any.default any.dim any.dims argmax.default argmin.default count_nonzero.default "
        "count_nonzero.dim_IntList linalg_vector_norm.default logsumexp.default max.default max.dim "
        "mean.default mean.dim min.default min.dim nansum.default norm.Scalar norm.ScalarOpt_dim "
        "norm.ScalarOpt_dim_dtype prod.default prod.dim_int sum.default sum.dim_IntList "
    ),
    "primtorch_decomps.decomps.arithmetic.ternary": (
        "addcdiv.default addcmul.default clamp.Tensor clamp.default clamp_max.Tensor clamp_max.default "
        "clamp_min.Tensor clamp_min.default lerp.Scalar lerp.Tensor masked_fill.Scalar masked_fill.Tensor "
        "where.Scalar where.ScalarOther where.ScalarSelf where.self "
    ),
    "primtorch_decomps.decomps.arithmetic.unary": (
        "_conj_physical.default _neg_view.default abs.default acos.default acosh.default asin.default "
        "asinh.default atan.default atanh.default bitwise_not.default ceil.default conj_physical.default "
        "cos.default cosh.default deg2rad.default erf.default erfc.default exp.default exp2.default "
        "expm1.default floor.default frac.default isinf.default isnan.default isneginf.default "
        "isposinf.default lgamma.default log.default log10.default log1p.default log2.default "
        "logical_not.default logit.default nan_to_num.default neg.default positive.default rad2deg.default "
        "reciprocal.default round.default rsqrt.default sgn.default sigmoid.default sign.default "
        "sin.default sinc.default sinh.default sqrt.default square.default tan.default tanh.default "
        "trunc.default "
    ),
    "primtorch_decomps.decomps.data_movement.conversion": "_to_copy.default clone.default copy.default",
    "primtorch_decomps.decomps.data_movement.embedding": "embedding.default",
    "primtorch_decomps.decomps.data_movement.factories": (
        "arange.default arange.start arange.start_step eye.default eye.m fill.Scalar fill.Tensor "
        "full.default full_like.default new_full.default new_ones.default new_zeros.default ones.default "
        "ones_like.default scalar_tensor.default zeros.default zeros_like.default "
    ),
    "primtorch_decomps.decomps.data_movement.few_places": "scatter.src scatter.value scatter_add.default",
    "primtorch_decomps.decomps.data_movement.indexing": (
        "gather.default index.Tensor index_select.default select_backward.default select_scatter.default "
        "slice_backward.default slice_scatter.default "
    ),
    "primtorch_decomps.decomps.data_movement.joining": (
        "cat.default constant_pad_nd.default flip.default repeat.default roll.default stack.default "
        "tril.default triu.default "
    ),
    "primtorch_decomps.decomps.data_movement.ranges": "linspace.default logspace.default",
    "primtorch_decomps.decomps.data_movement.rearranging": (
        "channel_shuffle.default narrow_copy.default take.default "
    ),
    "primtorch_decomps.decomps.data_movement.view_copies": (
        "alias_copy.default detach_copy.default diagonal_copy.default expand_copy.default "
        "permute_copy.default select_copy.int slice_copy.Tensor split_copy.Tensor "
        "split_with_sizes_copy.default squeeze_copy.default squeeze_copy.dim squeeze_copy.dims "
        "t_copy.default transpose_copy.int unbind_copy.int unfold_copy.default unsqueeze_copy.default "
    ),
    "primtorch_decomps.decomps.data_movement.views": (
        "_reshape_alias.default _unsafe_view.default alias.default chunk.default detach.default "
        "diagonal.default expand.default lift_fresh.default lift_fresh_copy.default narrow.default "
        "permute.default reshape.default select.int slice.Tensor split.Tensor split_with_sizes.default "
        "squeeze.default squeeze.dim squeeze.dims t.default transpose.int unbind.int unfold.default "
        "unsafe_chunk.default unsafe_split.Tensor unsafe_split_with_sizes.default unsqueeze.default "
        "view.default view_copy.default "
    ),
    "primtorch_decomps.decomps.linear_algebra.diagonals": (
        "block_diag.default diag_embed.default diagonal_backward.default diagonal_scatter.default "
        "trace.default "
    ),
    "primtorch_decomps.decomps.linear_algebra.vectors": (
        "addr.default dist.default linalg_cross.default renorm.default "
    ),
    "primtorch_decomps.decomps.neural_networks.activations": (
        "_prelu_kernel.default celu.default elu.default gelu.default glu.default hardshrink.default "
        "hardsigmoid.default hardswish.default hardtanh.default leaky_relu.default log_sigmoid.default "
        "log_sigmoid_forward.default mish.default relu.default relu6.default selu.default silu.default "
        "softplus.default softshrink.default threshold.default "
    ),
    "primtorch_decomps.decomps.neural_networks.activations_backward": (
        "_prelu_kernel_backward.default elu_backward.default gelu_backward.default glu_backward.default "
        "hardshrink_backward.default hardsigmoid_backward.default hardswish_backward.default "
        "hardtanh_backward.default leaky_relu_backward.default log_sigmoid_backward.default "
        "logit_backward.default mish_backward.default native_dropout_backward.default "
        "sigmoid_backward.default silu_backward.default softplus_backward.default "
        "softshrink_backward.default tanh_backward.default threshold_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.batch_norm": (
        "_native_batch_norm_legit.no_stats _native_batch_norm_legit_functional.default "
        "_native_batch_norm_legit_no_training.default native_batch_norm.default "
        "native_batch_norm_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.interpolation": (
        "upsample_bicubic2d.default upsample_bilinear2d.default upsample_linear1d.default "
        "upsample_trilinear3d.default "
    ),
    "primtorch_decomps.decomps.neural_networks.losses": (
        "binary_cross_entropy.default binary_cross_entropy_backward.default "
        "binary_cross_entropy_with_logits.default huber_loss.default huber_loss_backward.default "
        "mse_loss.default mse_loss_backward.default nll_loss2d_backward.default nll_loss2d_forward.default "
        "nll_loss_backward.default nll_loss_forward.default smooth_l1_loss.default "
        "smooth_l1_loss_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.margin_losses": (
        "multi_margin_loss.default multi_margin_loss_backward.default soft_margin_loss.default "
        "soft_margin_loss_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.max_pooling": (
        "max_pool2d_with_indices.default max_pool2d_with_indices_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.normalization": (
        "_fused_rms_norm.default _fused_rms_norm_backward.default _weight_norm_interface.default "
        "_weight_norm_interface_backward.default native_group_norm.default "
        "native_group_norm_backward.default native_layer_norm.default native_layer_norm_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.pooling": (
        "_adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default avg_pool2d.default "
        "avg_pool2d_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.resampling": (
        "_upsample_nearest_exact1d.default _upsample_nearest_exact2d.default "
        "_upsample_nearest_exact3d.default pixel_shuffle.default pixel_unshuffle.default "
        "reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default "
        "replication_pad1d.default replication_pad2d.default replication_pad3d.default "
        "upsample_nearest1d.default upsample_nearest2d.default upsample_nearest3d.default "
    ),
    "primtorch_decomps.decomps.neural_networks.softmax": (
        "_log_softmax.default _log_softmax_backward_data.default _safe_softmax.default _softmax.default "
        "_softmax_backward_data.default "
    ),
}

RULED = {
    "primtorch_decomps.decomps.arithmetic.binary": (
        "__lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor add.Scalar add.Tensor "
        "atan2.default bitwise_and.Scalar bitwise_and.Tensor bitwise_left_shift.Tensor "
        "bitwise_left_shift.Tensor_Scalar bitwise_or.Scalar bitwise_or.Tensor bitwise_right_shift.Tensor "
        "bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Tensor div.Scalar div.Tensor "
        "floor_divide.Scalar floor_divide.default fmax.default fmin.default fmod.Scalar fmod.Tensor "
        "heaviside.default hypot.default logaddexp.default maximum.default minimum.default mul.Scalar "
        "mul.Tensor pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor remainder.Scalar remainder.Scalar_Tensor "
        "remainder.Tensor rsub.Scalar rsub.Tensor sub.Scalar sub.Tensor true_divide.Tensor xlogy.Tensor "
    ),
    "primtorch_decomps.decomps.arithmetic.comparison": (
        "eq.Scalar eq.Tensor ge.Scalar ge.Tensor gt.Scalar gt.Tensor le.Scalar le.Tensor "
        "logical_and.default logical_or.default logical_xor.default lt.Scalar lt.Tensor ne.Scalar ne.Tensor "
    ),
    "primtorch_decomps.decomps.arithmetic.division_modes": "div.Scalar_mode div.Tensor_mode",
    "primtorch_decomps.decomps.arithmetic.elementary": (
        "angle.default logaddexp2.default mvlgamma.default round.decimals special_entr.default "
        "special_xlog1py.default "
    ),
    "primtorch_decomps.decomps.arithmetic.ternary": (
        "addcdiv.default addcmul.default clamp.Tensor clamp.default clamp_max.Tensor clamp_max.default "
        "clamp_min.Tensor clamp_min.default lerp.Scalar lerp.Tensor masked_fill.Scalar masked_fill.Tensor "
        "where.Scalar where.ScalarOther where.ScalarSelf where.self "
    ),
    "primtorch_decomps.decomps.arithmetic.unary": (
        "_conj_physical.default _neg_view.default abs.default acos.default acosh.default asin.default "
        "asinh.default atan.default atanh.default bitwise_not.default ceil.default conj_physical.default "
        "cos.default cosh.default deg2rad.default erf.default erfc.default exp.default exp2.default "
        "expm1.default floor.default frac.default isinf.default isnan.default isneginf.default "
        "isposinf.default lgamma.default log.default log10.default log1p.default log2.default "
        "logical_not.default logit.default nan_to_num.default neg.default positive.default rad2deg.default "
        "reciprocal.default round.default rsqrt.default sgn.default sigmoid.default sign.default "
        "sin.default sinc.default sinh.default sqrt.default square.default tan.default tanh.default "
        "trunc.default "
    ),
    "primtorch_decomps.decomps.data_movement.conversion": "_to_copy.default clone.default copy.default",
    "primtorch_decomps.decomps.data_movement.factories": (
        "eye.default eye.m fill.Scalar fill.Tensor full_like.default ones_like.default zeros_like.default "
    ),
    "primtorch_decomps.decomps.data_movement.indexing": (
        "gather.default index.Tensor select_scatter.default slice_scatter.default "
    ),
    "primtorch_decomps.decomps.data_movement.joining": (
        "cat.default constant_pad_nd.default flip.default repeat.default roll.default stack.default "
        "tril.default triu.default "
    ),
    "primtorch_decomps.decomps.data_movement.ranges": "linspace.default logspace.default",
    "primtorch_decomps.decomps.data_movement.rearranging": "channel_shuffle.default",
    "primtorch_decomps.decomps.data_movement.view_copies": (
        "alias_copy.default detach_copy.default diagonal_copy.default expand_copy.default "
        "permute_copy.default select_copy.int slice_copy.Tensor split_copy.Tensor "
        "split_with_sizes_copy.default squeeze_copy.default squeeze_copy.dim squeeze_copy.dims "
        "t_copy.default transpose_copy.int unbind_copy.int unfold_copy.default unsqueeze_copy.default "
    ),
    "primtorch_decomps.decomps.linear_algebra.diagonals": (
        "block_diag.default diag_embed.default diagonal_scatter.default "
    ),
    "primtorch_decomps.decomps.neural_networks.activations": (
        "_prelu_kernel.default celu.default elu.default gelu.default glu.default hardshrink.default "
        "hardsigmoid.default hardswish.default hardtanh.default leaky_relu.default log_sigmoid.default "
        "log_sigmoid_forward.default mish.default relu.default relu6.default selu.default silu.default "
        "softplus.default softshrink.default threshold.default "
    ),
    "primtorch_decomps.decomps.neural_networks.activations_backward": (
        "_prelu_kernel_backward.default elu_backward.default gelu_backward.default glu_backward.default "
        "hardshrink_backward.default hardsigmoid_backward.default hardswish_backward.default "
        "hardtanh_backward.default leaky_relu_backward.default log_sigmoid_backward.default "
        "logit_backward.default mish_backward.default native_dropout_backward.default "
        "sigmoid_backward.default silu_backward.default softplus_backward.default "
        "softshrink_backward.default tanh_backward.default threshold_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.batch_norm": (
        "_native_batch_norm_legit.no_stats _native_batch_norm_legit_functional.default "
        "_native_batch_norm_legit_no_training.default native_batch_norm.default "
        "native_batch_norm_backward.default "
    ),
    "primtorch_decomps.decomps.neural_networks.normalization": "native_layer_norm.default",
    "primtorch_decomps.decomps.neural_networks.resampling": (
        "_upsample_nearest_exact1d.default _upsample_nearest_exact2d.default "
        "_upsample_nearest_exact3d.default pixel_shuffle.default pixel_unshuffle.default "
        "reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default "
        "replication_pad1d.default replication_pad2d.default replication_pad3d.default "
        "upsample_nearest1d.default upsample_nearest2d.default upsample_nearest3d.default "
    ),
    "primtorch_decomps.decomps.neural_networks.softmax": (
        "_log_softmax.default _log_softmax_backward_data.default _safe_softmax.default _softmax.default "
        "_softmax_backward_data.default "
    ),
    "primtorch_decomps.rules.arithmetic.pointwise": (
        "copysign.Scalar copysign.Tensor digamma.default erfinv.default frexp.Tensor gcd.default i0.default "
        "igamma.default igammac.default lcm.default ldexp.Tensor nextafter.default polygamma.default "
        "signbit.default special_airy_ai.default special_bessel_j0.default special_bessel_j1.default "
        "special_bessel_y0.default special_bessel_y1.default special_chebyshev_polynomial_t.default "
        "special_chebyshev_polynomial_u.default special_chebyshev_polynomial_v.default "
        "special_chebyshev_polynomial_w.default special_erfcx.default special_hermite_polynomial_h.default "
        "special_hermite_polynomial_he.default special_i0e.default special_i1.default special_i1e.default "
        "special_laguerre_polynomial_l.default special_legendre_polynomial_p.default "
        "special_log_ndtr.default special_modified_bessel_i0.default special_modified_bessel_i1.default "
        "special_modified_bessel_k0.default special_modified_bessel_k1.default special_ndtri.default "
        "special_scaled_modified_bessel_k0.default special_scaled_modified_bessel_k1.default "
        "special_shifted_chebyshev_polynomial_t.default special_shifted_chebyshev_polynomial_u.default "
        "special_shifted_chebyshev_polynomial_v.default special_shifted_chebyshev_polynomial_w.default "
        "special_spherical_bessel_j0.default special_zeta.default "
    ),
    "primtorch_decomps.rules.arithmetic.reductions": (
        "all.dim all.dims amax.default amin.default aminmax.default any.dim any.dims argmax.default "
        "argmin.default linalg_vector_norm.default logsumexp.default max.default max.dim mean.dim "
        "min.default min.dim norm.ScalarOpt_dim prod.dim_int sum.dim_IntList trace.default "
    ),
    "primtorch_decomps.rules.data_movement.bags": (
        "_embedding_bag.default _embedding_bag_backward.default _embedding_bag_dense_backward.default "
        "_embedding_bag_forward_only.default _embedding_bag_per_sample_weights_backward.default "
    ),
    "primtorch_decomps.rules.data_movement.data_sizes": (
        "_ctc_loss.Tensor _ctc_loss_backward.Tensor _local_scalar_dense.default _unique.default "
        "_unique2.default argwhere.default bincount.default masked_select.default nonzero.default "
        "repeat_interleave.Tensor unique_consecutive.default unique_dim.default "
        "unique_dim_consecutive.default "
    ),
    "primtorch_decomps.rules.data_movement.drawing": (
        "_dirichlet_grad.default _sample_dirichlet.default _standard_gamma.default "
        "_standard_gamma_grad.default binomial.default cauchy.default geometric.default log_normal.default "
        "multinomial.default normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor "
        "normal.float_float poisson.default randint.default randint.generator randint.low "
        "randint.low_generator randperm.default randperm.generator rrelu_with_noise.default "
        "rrelu_with_noise_backward.default rrelu_with_noise_functional.default "
    ),
    "primtorch_decomps.rules.data_movement.order_statistics": (
        "cummax.default cummin.default histc.default isin.Tensor_Scalar isin.Tensor_Tensor kthvalue.default "
        "logcumsumexp.default median.default median.dim mode.default nanmedian.default nanmedian.dim "
    ),
    "primtorch_decomps.rules.data_movement.scatter": (
        "_unsafe_index_put.default as_strided.default as_strided_scatter.default bernoulli.default "
        "bernoulli.p cumprod.default cumsum.default embedding_dense_backward.default empty.memory_format "
        "empty_like.default empty_strided.default exponential.default index_add.default index_copy.default "
        "index_fill.int_Scalar index_fill.int_Tensor index_put.default index_reduce.default "
        "masked_scatter.default masked_scatter_backward.default native_dropout.default new_empty.default "
        "new_empty_strided.default normal_functional.default put.default rand.default rand.generator "
        "rand_like.default rand_like.generator randn.default randn.generator randn_like.default "
        "randn_like.generator scatter.reduce scatter.src scatter.value scatter.value_reduce "
        "scatter_add.default scatter_reduce.two sort.default sort.stable topk.default uniform.default "
    ),
    "primtorch_decomps.rules.data_movement.searching": "bucketize.Tensor searchsorted.Tensor",
    "primtorch_decomps.rules.data_movement.segments": (
        "_segment_reduce_backward.default segment_reduce.default "
    ),
    "primtorch_decomps.rules.data_movement.view_gradients": (
        "diagonal_backward.default select_backward.default slice_backward.default "
    ),
    "primtorch_decomps.rules.data_movement.views": (
        "_reshape_alias.default _unsafe_view.default alias.default chunk.default detach.default "
        "diagonal.default expand.default lift_fresh.default lift_fresh_copy.default narrow.default "
        "permute.default reshape.default select.int slice.Tensor split.Tensor split_with_sizes.default "
        "squeeze.default squeeze.dim squeeze.dims t.default transpose.int unbind.int unfold.default "
        "unsafe_chunk.default unsafe_split.Tensor unsafe_split_with_sizes.default unsqueeze.default "
        "view.default view.dtype view_copy.default "
    ),
    "primtorch_decomps.rules.images.grids": (
        "affine_grid_generator.default grid_sampler_2d.default grid_sampler_2d_backward.default "
        "grid_sampler_3d.default grid_sampler_3d_backward.default rot90.default "
    ),
    "primtorch_decomps.rules.images.patches": "col2im.default im2col.default unfold_backward.default",
    "primtorch_decomps.rules.images.pooling": (
        "_adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default avg_pool2d.default "
        "avg_pool2d_backward.default max_pool2d_with_indices.default "
        "max_pool2d_with_indices_backward.default "
    ),
    "primtorch_decomps.rules.images.resampling": (
        "_upsample_bicubic2d_aa.default _upsample_bicubic2d_aa_backward.default "
        "_upsample_bilinear2d_aa.default _upsample_bilinear2d_aa_backward.default "
        "_upsample_nearest_exact1d_backward.default _upsample_nearest_exact2d_backward.default "
        "_upsample_nearest_exact3d_backward.default reflection_pad1d_backward.default "
        "reflection_pad2d_backward.default reflection_pad3d_backward.default "
        "replication_pad1d_backward.default replication_pad2d_backward.default "
        "replication_pad3d_backward.default upsample_bicubic2d.default upsample_bicubic2d_backward.default "
        "upsample_bilinear2d.default upsample_bilinear2d_backward.default upsample_linear1d.default "
        "upsample_linear1d_backward.default upsample_nearest1d_backward.default "
        "upsample_nearest2d_backward.default upsample_nearest3d_backward.default "
        "upsample_trilinear3d.default upsample_trilinear3d_backward.default "
    ),
    "primtorch_decomps.rules.images.volumes": (
        "_adaptive_avg_pool3d.default _adaptive_avg_pool3d_backward.default adaptive_max_pool2d.default "
        "adaptive_max_pool2d_backward.default adaptive_max_pool3d.default "
        "adaptive_max_pool3d_backward.default avg_pool3d.default avg_pool3d_backward.default "
        "fractional_max_pool2d.default fractional_max_pool2d_backward.default fractional_max_pool3d.default "
        "fractional_max_pool3d_backward.default max_pool3d_with_indices.default "
        "max_pool3d_with_indices_backward.default max_unpool2d.default max_unpool3d.default "
    ),
    "primtorch_decomps.rules.linear_algebra.complex_numbers": (
        "_conj.default complex.default polar.default view_as_complex.default view_as_real.default "
    ),
    "primtorch_decomps.rules.linear_algebra.factorizations": (
        "_linalg_check_errors.default _linalg_det.default _linalg_eigh.default _linalg_eigvals.default "
        "_linalg_slogdet.default _linalg_svd.default cholesky.default cholesky_inverse.default "
        "geqrf.default linalg_cholesky_ex.default linalg_eig.default linalg_householder_product.default "
        "linalg_inv_ex.default linalg_ldl_factor_ex.default linalg_lu.default linalg_lu_factor_ex.default "
        "linalg_qr.default lu_unpack.default ormqr.default "
    ),
    "primtorch_decomps.rules.linear_algebra.fourier": "_fft_c2c.default _fft_c2r.default _fft_r2c.default",
    "primtorch_decomps.rules.linear_algebra.matmul": (
        "_trilinear.default addbmm.default addmm.default addmv.default baddbmm.default bmm.default "
        "dot.default linear.default mm.default mv.default vdot.default "
    ),
    "primtorch_decomps.rules.linear_algebra.solving": (
        "_linalg_solve_ex.default cholesky_solve.default linalg_ldl_solve.default linalg_lstsq.default "
        "linalg_lu_solve.default linalg_pinv.atol_rtol_tensor linalg_solve_triangular.default "
        "triangular_solve.default "
    ),
    "primtorch_decomps.rules.linear_algebra.vectors": (
        "_cdist_backward.default _cdist_forward.default _euclidean_dist.default _pdist_backward.default "
        "_pdist_forward.default addr.default dist.default linalg_cross.default renorm.default "
    ),
    "primtorch_decomps.rules.neural_networks.attention": (
        "_native_multi_head_attention.default _scaled_dot_product_flash_attention_for_cpu.default "
        "_scaled_dot_product_flash_attention_for_cpu_backward.default "
        "_transformer_encoder_layer_fwd.default "
    ),
    "primtorch_decomps.rules.neural_networks.convolution": (
        "convolution.default convolution_backward.default "
    ),
    "primtorch_decomps.rules.neural_networks.cuda_attention": (
        "_scaled_dot_product_cudnn_attention.default _scaled_dot_product_cudnn_attention_backward.default "
        "_scaled_dot_product_efficient_attention.default "
        "_scaled_dot_product_efficient_attention_backward.default "
        "_scaled_dot_product_flash_attention.default _scaled_dot_product_flash_attention_backward.default "
    ),
    "primtorch_decomps.rules.neural_networks.flex_attention": (
        "fx_interface.attention.default fx_interface.attention_backward.default "
    ),
    "primtorch_decomps.rules.neural_networks.losses": (
        "binary_cross_entropy.default binary_cross_entropy_backward.default "
        "binary_cross_entropy_with_logits.default huber_loss.default huber_loss_backward.default "
        "mse_loss.default mse_loss_backward.default multi_margin_loss.default "
        "multi_margin_loss_backward.default multilabel_margin_loss_backward.default "
        "multilabel_margin_loss_forward.default nll_loss2d_backward.default nll_loss2d_forward.default "
        "nll_loss_backward.default nll_loss_forward.default smooth_l1_loss.default "
        "smooth_l1_loss_backward.default soft_margin_loss.default soft_margin_loss_backward.default "
    ),
    "primtorch_decomps.rules.neural_networks.normalization": (
        "native_group_norm.default native_group_norm_backward.default native_layer_norm_backward.default "
        "std.correction std_mean.correction var.correction var_mean.correction "
    ),
    "primtorch_decomps.rules.neural_networks.recurrent": (
        "mkldnn_rnn_layer.default mkldnn_rnn_layer_backward.default "
    ),
}

BY_PREFIX = {"_foreach_": "primtorch_decomps.decomps.arithmetic.foreach"}
