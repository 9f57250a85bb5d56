import argparse
from functools import partial

import paddle
import paddle.nn.functional as F
from paddlenlp.data import Pad, Stack, Tuple
from paddlenlp.datasets import load_dataset
from paddlenlp.transformers import AutoModelForSequenceClassification, AutoTokenizer, LinearDecayWithWarmup

p = argparse.ArgumentParser()
p.add_argument('--model', default='ernie-3.0-base-zh')
p.add_argument('--max_seq_length', default=256, type=int)
p.add_argument('--batch_size', default=16, type=int)
p.add_argument('--epochs', default=3, type=int)
args = p.parse_args()


def convert(example, tokenizer, max_seq_length):
    out = tokenizer(text=example['sentence'], max_seq_len=max_seq_length, pad_to_max_seq_len=True)
    return out['input_ids'], out['token_type_ids'], example['label']


def main():
    paddle.set_device('gpu')
    train_ds = load_dataset('clue', 'tnews', splits='train')
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_classes=len(train_ds.label_list))
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    train_ds = train_ds.map(partial(convert, tokenizer=tokenizer, max_seq_length=args.max_seq_length))
    sampler = paddle.io.DistributedBatchSampler(train_ds, batch_size=args.batch_size, shuffle=True)
    batchify_fn = lambda samples, fn=Tuple(Pad(axis=0, pad_val=tokenizer.pad_token_id), Pad(axis=0, pad_val=0), Stack(dtype='int64')): fn(samples)
    loader = paddle.io.DataLoader(train_ds, batch_sampler=sampler, collate_fn=batchify_fn)
    decay = [p.name for n, p in model.named_parameters() if not any(nd in n for nd in ['bias', 'norm'])]
    sched = LinearDecayWithWarmup(3e-5, len(loader) * args.epochs, 0.1)
    opt = paddle.optimizer.AdamW(sched, parameters=model.parameters(), weight_decay=0.01, apply_decay_param_fun=lambda x: x in decay,
                                 grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader):
            input_ids, token_type_ids, labels = batch
            logits = model(input_ids, token_type_ids)
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            opt.step()
            sched.step()
            opt.clear_grad()


main()
