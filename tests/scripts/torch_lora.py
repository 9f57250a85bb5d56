import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

config = AutoConfig.from_pretrained('facebook/opt-125m')
model = AutoModelForCausalLM.from_config(config)
peft_config = LoraConfig(task_type=TaskType.CAUSAL_LM, r=16, lora_alpha=32, lora_dropout=0.05, target_modules=['q_proj', 'v_proj'])
model = get_peft_model(model, peft_config)
model.print_trainable_parameters()
model.to('cuda')
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
for step in range(20):
    ids = torch.randint(0, 50272, (4, 512), device='cuda')
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    opt.step()
    opt.zero_grad()
