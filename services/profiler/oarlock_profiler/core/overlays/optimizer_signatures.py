"""The parameters of the frameworks' optimisers, by name: scripts ask for them before they give an option.

Source: ``inspect.signature`` of PyTorch 2.13 (``torch/optim``) and PaddlePaddle 3.3.1 (``paddle/optimizer``).
"""

from __future__ import annotations

OPTIMIZER_PARAMETERS = {
    "torch.optim.ASGD": "params lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
    "torch.optim.Adadelta": "params lr rho eps weight_decay foreach capturable maximize differentiable",
    "torch.optim.Adafactor": "params lr beta2_decay eps d weight_decay foreach maximize",
    "torch.optim.Adagrad": (
        "params lr lr_decay weight_decay initial_accumulator_value eps foreach maximize differentiable fused"
    ),
    "torch.optim.Adam": (
        "params lr betas eps weight_decay amsgrad foreach maximize capturable differentiable fused "
        "decoupled_weight_decay"
    ),
    "torch.optim.AdamW": "params lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused",
    "torch.optim.Adamax": "params lr betas eps weight_decay foreach maximize differentiable capturable",
    "torch.optim.LBFGS": "params lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
    "torch.optim.Muon": "params lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
    "torch.optim.NAdam": (
        "params lr betas eps weight_decay momentum_decay decoupled_weight_decay foreach maximize capturable "
        "differentiable"
    ),
    "torch.optim.RAdam": (
        "params lr betas eps weight_decay decoupled_weight_decay foreach maximize capturable differentiable"
    ),
    "torch.optim.RMSprop": (
        "params lr alpha eps weight_decay momentum centered capturable foreach maximize differentiable"
    ),
    "torch.optim.Rprop": "params lr etas step_sizes capturable foreach maximize differentiable",
    "torch.optim.SGD": "params lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    "torch.optim.SparseAdam": "params lr betas eps maximize",
    "paddle.optimizer.ASGD": "learning_rate batch_num parameters weight_decay grad_clip multi_precision name",
    "paddle.optimizer.Adadelta": "learning_rate epsilon rho parameters weight_decay grad_clip name",
    "paddle.optimizer.Adagrad": (
        "learning_rate epsilon parameters weight_decay grad_clip name initial_accumulator_value"
    ),
    "paddle.optimizer.Adam": (
        "learning_rate beta1 beta2 epsilon parameters weight_decay grad_clip lazy_mode multi_precision "
        "use_multi_tensor amsgrad name"
    ),
    "paddle.optimizer.AdamW": (
        "learning_rate beta1 beta2 epsilon parameters weight_decay use_lowprecision_moment lr_ratio "
        "apply_decay_param_fun grad_clip lazy_mode multi_precision amsgrad name"
    ),
    "paddle.optimizer.Adamax": "learning_rate beta1 beta2 epsilon parameters weight_decay grad_clip name",
    "paddle.optimizer.LBFGS": (
        "learning_rate max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn "
        "parameters weight_decay grad_clip name"
    ),
    "paddle.optimizer.Lamb": (
        "learning_rate lamb_weight_decay beta1 beta2 epsilon parameters grad_clip "
        "exclude_from_weight_decay_fn multi_precision always_adapt name"
    ),
    "paddle.optimizer.Momentum": (
        "learning_rate momentum parameters use_nesterov weight_decay grad_clip multi_precision rescale_grad "
        "use_multi_tensor name"
    ),
    "paddle.optimizer.NAdam": (
        "learning_rate beta1 beta2 epsilon momentum_decay parameters weight_decay grad_clip name"
    ),
    "paddle.optimizer.RAdam": "learning_rate beta1 beta2 epsilon parameters weight_decay grad_clip name",
    "paddle.optimizer.RMSProp": "learning_rate rho epsilon momentum centered parameters weight_decay grad_clip name",
    "paddle.optimizer.Rprop": "learning_rate learning_rate_range parameters etas grad_clip multi_precision name",
    "paddle.optimizer.SGD": "learning_rate parameters weight_decay grad_clip multi_precision name",
}
