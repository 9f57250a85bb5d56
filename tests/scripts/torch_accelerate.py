import argparse

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForMaskedLM, AutoTokenizer, get_scheduler


class Lines(torch.utils.data.Dataset):
    def __init__(self, tokenizer, n=2000, length=96):
        self.ids = tokenizer(['some text'] * n, max_length=length, padding='max_length', truncation=True)['input_ids']

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {'input_ids': torch.tensor(self.ids[i]), 'labels': torch.tensor(self.ids[i])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--model_name_or_path', default='distilbert-base-uncased')
    parser.add_argument('--gradient_accumulation_steps', type=int, default=2)
    args = parser.parse_args()
    accelerator = Accelerator(mixed_precision='fp16', gradient_accumulation_steps=args.gradient_accumulation_steps)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = AutoModelForMaskedLM.from_pretrained(args.model_name_or_path)
    loader = DataLoader(Lines(tokenizer), batch_size=16, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    scheduler = get_scheduler('linear', optimizer, num_warmup_steps=0, num_training_steps=1000)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for epoch in range(2):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()


main()
