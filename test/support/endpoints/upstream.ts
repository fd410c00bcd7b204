/** What the upstreams have in common. */

/** What an upstream does not accept. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

export function refuseIf(isBroken: boolean, message: string): void {
  if (isBroken) throw new Refused(message);
}

export const roundsOf = (text: string): number => Number(/\((\d+) rounds?\)/.exec(text)?.[1] ?? 0);

export const answerTo = (text: string): string[] =>
  text.includes('(relevance)') ? ['Yes'] : ['It opens ', 'at nine.'];
