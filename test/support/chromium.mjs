// Finds or installs Chromium, or a browser based on it, for the tests that need one.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { SetUpError } from '../../infra/set-up/say.mjs';
import { installCommand, installProgram } from '../../infra/set-up/system-packages.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'microsoft-edge'];
/** Paths on macOS. */
const APPLICATIONS = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Packages with Chromium, by package manager. */
const PACKAGES = {
  'apt-get': ['chromium', 'chromium-browser'],
  dnf: ['chromium'],
  yum: ['chromium'],
  apk: ['chromium'],
  pacman: ['chromium'],
  brew: ['chromium'],
};

/** @returns its path */
export function ensureChromium() {
  const found = chromiumPath();
  if (found !== undefined) return found;
  const { installed, manager } = installProgram('chromium', PACKAGES, () => chromiumPath() !== undefined);
  if (installed) return chromiumPath();
  const how = manager === undefined ? '' : `\nInstall it: ${installCommand(manager, PACKAGES[manager.command][0])}`;
  throw new SetUpError(`A Chromium is needed and was not found on the PATH (${NAMES.join(', ')}).${how}`);
}

function chromiumPath() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return [...NAMES.flatMap((name) => folders.map((folder) => join(folder, name))), ...APPLICATIONS].find(existsSync);
}
