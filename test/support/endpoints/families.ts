import { anthropic } from './anthropic.ts';
import { llamacpp, vllm } from './chat-templates.ts';
import { deepseek, kimi } from './deepseek-kimi.ts';
import { gemini } from './gemini.ts';
import { mistral } from './mistral.ts';
import { azure, openai } from './openai.ts';
import { openrouter } from './openrouter.ts';

export const FAMILIES = [openai, azure, anthropic, gemini, mistral, deepseek, kimi, vllm, llamacpp, openrouter];
