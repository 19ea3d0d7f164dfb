# Builds the guest as an author does: with the package of the SDK that `npm pack` makes. Needs npm and its registry.
set -eu
out=$1
here=$(pwd)

rm -rf "$out/guest" "$out/repository"
mkdir -p "$out/guest" "$out/repository/guest-sdk/typescript"
cp -R ../../../LICENSE ../../../wit "$out/repository"
(cd ../../../guest-sdk/typescript && cp -R package.json tsconfig.json tsconfig.build.json world.wit wit.mjs README.md src "$out/repository/guest-sdk/typescript")

cd "$out/repository/guest-sdk/typescript"
npm install --no-audit --no-fund --loglevel=error
npm pack --pack-destination "$out/repository" --loglevel=error

cp -R "$here/package.json" "$here/tsconfig.json" "$here/src" "$out/guest"
cd "$out/guest"
npm pkg set "dependencies.weir-sdk=file:$(echo "$out"/repository/weir-sdk-*.tgz)"
npm install --no-audit --no-fund --loglevel=error
npx tsc
npx weir-js build --out "$out/conformance.wasm"
