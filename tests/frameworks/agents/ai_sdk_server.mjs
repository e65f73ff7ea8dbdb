// An agent of Vercel's AI SDK with its mock model, which streams to the SDK's chats: `ai_sdk_server.mjs PORT`.

import { createServer } from 'node:http';
import {
  convertToModelMessages, isStepCount, pipeUIMessageStreamToResponse, simulateReadableStream, streamText,
  tool, toUIMessageStream,
} from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { z } from 'zod';

const amount = process.env.WRONG === 'amount' ? 24 : 42;
const plan = [['lookup', { order: 'A-1' }], ['refund', { order: 'A-1', amount }]];
const usage = { inputTokens: { total: 10, noCache: 10 }, outputTokens: { total: 5, text: 5 } };

async function doStream({ prompt }) {
  const place = prompt.findLastIndex(({ role }) => role === 'user');
  const text = prompt[place].content.map(part => part.text).join('');
  if (text === 'fail') throw new Error('the model is down');
  const calls = text.includes('Refund') ? plan : [];
  const next = calls[prompt.slice(place).filter(({ role }) => role === 'tool').length];
  const number = prompt.filter(({ role }) => role === 'user').length;
  const words = calls.length ? ['I refunded ', '42.'] : [`${number}: `, text];
  const chunks = next
    ? [{ type: 'tool-call', toolCallId: `call_${next[0]}`, toolName: next[0], input: JSON.stringify(next[1]) }]
    : [{ type: 'text-start', id: '1' }, ...words.map(delta => ({ type: 'text-delta', id: '1', delta })),
       { type: 'text-end', id: '1' }];
  const finishReason = { unified: next ? 'tool-calls' : 'stop', raw: undefined };
  return { stream: simulateReadableStream({ chunks: [...chunks, { type: 'finish', finishReason, usage }] }) };
}

const tools = {
  lookup: tool({ inputSchema: z.object({ order: z.string() }), execute: async () => ({ paid: 42 }) }),
  refund: tool({ inputSchema: z.object({ order: z.string(), amount: z.number() }), execute: async () => 'ok' }),
};

createServer(async (request, response) => {
  if (request.method === 'GET') return response.end('ok');
  let body = '';
  for await (const piece of request) body += piece;
  const { stream } = streamText({
    model: new MockLanguageModelV4({ doStream }),
    messages: await convertToModelMessages(JSON.parse(body).messages),
    tools,
    stopWhen: isStepCount(5),
    onError: () => {},
  });
  pipeUIMessageStreamToResponse({ response, stream: toUIMessageStream({ stream }) });
}).listen(Number(process.argv[2]), '127.0.0.1');
