import type { Projector } from '#libs/platform/readmodel/index.ts';

/** A projector that applies the events of the log in another way, and is otherwise the same. */
export function applying(projector: Projector, applyStored: Projector['applyStored']): Projector {
  return new Proxy(projector, {
    get(target, name) {
      if (name === 'applyStored') return applyStored;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
