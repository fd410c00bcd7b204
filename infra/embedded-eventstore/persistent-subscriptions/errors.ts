// Errors about groups, with the trailers from which the official client makes
// its typed errors.
import { status } from '@grpc/grpc-js';
import { CallError } from '../grpc/errors.ts';
import type { GroupName } from './group-settings.ts';

function groupError(code: status, exception: string, { source, group }: GroupName, message: string): CallError {
  return new CallError(code, message, { exception, 'stream-name': source, 'group-name': group });
}

export function groupDoesNotExist(name: GroupName): CallError {
  const message = `Subscription group ${name.group} on stream ${name.source} does not exist.`;
  return groupError(status.NOT_FOUND, 'persistent-subscription-does-not-exist', name, message);
}

export function groupExists(name: GroupName): CallError {
  const message = `Subscription group ${name.group} on stream ${name.source} exists.`;
  return groupError(status.ALREADY_EXISTS, 'persistent-subscription-exists', name, message);
}

export function maximumSubscribersReached(name: GroupName): CallError {
  const message = `Maximum subscriptions reached for subscription group ${name.group} on stream ${name.source}.`;
  return groupError(status.FAILED_PRECONDITION, 'maximum-subscribers-reached', name, message);
}

/** The server ended the subscription: the group was updated, deleted or restarted. */
export function subscriptionDropped(name: GroupName): CallError {
  const message = `Subscription group ${name.group} on stream ${name.source} was dropped.`;
  return groupError(status.CANCELLED, 'persistent-subscription-dropped', name, message);
}
