import type { sendUnaryData } from '@grpc/grpc-js';
import { toCallError } from './errors.ts';

/** Answers a call that has one response: with the result of the work, or the error that it threw. */
export async function answer<Response>(work: Promise<Response>, callback: sendUnaryData<Response>): Promise<void> {
  let response: Response;
  try {
    response = await work;
  } catch (error) {
    callback(toCallError(error).toStatus());
    return;
  }
  callback(null, response);
}
